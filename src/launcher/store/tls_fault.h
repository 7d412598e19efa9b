#pragma once

namespace lrun::launcher {

enum class TlsFault : int {
  kNone,
  kAuthorities,     ///< of our own: not in order
  kCertificate,     ///< the same
  kKey,             ///< the same
  kNoTls,           ///< the other end speaks something else
  kUntrusted,       ///< no trusted authority has signed its certificate
  kTime,            ///< its certificate is not valid now
  kName,            ///< its certificate is for another host
  kOwnCertificate,  ///< it wants a certificate of ours, or another one
  kOther,
};

}  // namespace lrun::launcher
