#pragma once

#include <string>

#include "store/openssl.h"
#include "store/tls_fault.h"

namespace lrun::launcher {

/// Certificates and a key, in PEM format.
struct PemTexts {
  std::string authorities;  ///< that may have signed the other end's certificate; empty: those that this system trusts
  std::string certificate;  ///< ours, and those between it and its authority; empty: we have none to show
  std::string key;          ///< of it; empty: in the same text
};

/// Gives the context the authorities to trust and our own certificate. \return the fault, as a clause about the text
/// that has it; kNone: there is none
struct TextFault {
  TlsFault fault = TlsFault::kNone;
  std::string why = {};
};
TextFault use_texts(const OpensslEntryPoints& openssl, OpensslEntryPoints::Context* context, const PemTexts& texts);

}  // namespace lrun::launcher
