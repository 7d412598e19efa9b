#pragma once

#include <openssl/ssl.h>

#include <string>

#include "store/tls_interface.h"

namespace lrun::launcher {

/// Whom to trust, and who we are. \return what is not in order, as a clause about the text it stands in; kNone: all is.
struct TextFault {
  TlsFault fault = TlsFault::kNone;
  std::string why = {};
};
TextFault take_question(SSL_CTX* context, const TlsQuestion& question);

}  // namespace lrun::launcher
