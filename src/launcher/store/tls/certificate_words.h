#pragma once

#include <openssl/x509.h>

#include <string>

#include "store/tls_interface.h"

namespace lrun::launcher {

/// Why a certificate is refused, as a clause about the host that shows it.
struct CertificateFault {
  TlsFault fault = TlsFault::kOther;
  std::string why;
};

/// What is wrong with the certificate at which `chain` has stopped. \param host  that was asked for.
CertificateFault certificate_fault(X509_STORE_CTX* chain, const std::string& host);

/// What the other end told us with an alert of this number before it went. \param has_certificate  we have shown one.
/// \param was_asked  it wanted to see one.
CertificateFault alert_fault(int alert, bool has_certificate, bool was_asked);

}  // namespace lrun::launcher
