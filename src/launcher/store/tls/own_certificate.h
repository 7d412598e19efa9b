#pragma once

#include <openssl/ssl.h>

#include <string>

#include "store/tls_interface.h"

namespace lrun::launcher {

/// Gives the context the authorities to trust and our own certificate. \return the fault, as a clause about the text
/// that has it; kNone: there is none
struct TextFault {
  TlsFault fault = TlsFault::kNone;
  std::string why = {};
};
TextFault take_question(SSL_CTX* context, const TlsQuestion& question);

}  // namespace lrun::launcher
