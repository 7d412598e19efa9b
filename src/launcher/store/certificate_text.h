#pragma once

#include <string>

#include "store/openssl.h"
#include "store/tls_fault.h"

namespace lrun::launcher {

/// Why a certificate is rejected, as a clause about the host that presents it.
struct CertificateFault {
  TlsFault fault = TlsFault::kOther;
  std::string why;
};

/// The fault of the certificate at which `chain` has stopped. \param host  that we want to reach
CertificateFault certificate_fault(const OpensslEntryPoints& openssl, const OpensslEntryPoints::Chain* chain,
                                   const std::string& host);

/// The fault behind an alert of the other end, by its number. \param has_certificate  we have presented one
/// \param was_asked  the other end wanted one
CertificateFault alert_fault(const OpensslEntryPoints& openssl, int alert, bool has_certificate, bool was_asked);

}  // namespace lrun::launcher
