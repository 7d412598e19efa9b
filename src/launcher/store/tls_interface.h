#pragma once

#include <cstddef>

namespace lrun::launcher {

/// The seam to liblrun_tls.so, which holds everything that touches OpenSSL: a launcher that does not use TLS neither
/// links nor loads it. Plain C, as each side has a C++ library of its own inside; both are of one build. Nothing here
/// throws, blocks or touches a socket: bytes of the other end go in, bytes for it come out. One thread.
struct TlsEnd;  ///< our end of one connection; the library's

struct TlsText {
  const char* bytes = nullptr;
  std::size_t size = 0;  ///< 0: there is none
};

/// The host that we want, and our identity. Certificates and keys are text in PEM format.
struct TlsQuestion {
  const char* host = nullptr;  ///< a name, or a numeric address, that the other end's certificate has to be for
  TlsText authorities;         ///< that may have signed it; none: those that this system trusts
  TlsText certificate;         ///< ours, and those between it and its authority; none: we have none to show
  TlsText key;                 ///< of it; none: in the same text
};

enum class TlsState : int {
  kHandshake,  ///< neither end knows the other yet
  kOpen,       ///< the other end has proved its identity
  kClosed,     ///< the other end has closed it
  kFailed,     ///< it is of no use: fault() and why()
};

enum class TlsFault : int {
  kNone,
  kAuthorities,     ///< of the question: not in order
  kCertificate,     ///< the same
  kKey,             ///< the same
  kNoTls,           ///< the other end speaks something else
  kUntrusted,       ///< no trusted authority has signed its certificate
  kTime,            ///< its certificate is not valid now
  kName,            ///< its certificate is for another host
  kOwnCertificate,  ///< it wants a certificate of ours, or another one
  kOther,
};

struct TlsFunctions {
  const char* version;  ///< LRUN_VERSION of the build
  /// \return null when memory ran out.
  TlsEnd* (*begin)(const TlsQuestion* question);
  void (*end)(TlsEnd* end);
  /// Bytes that came from the other end.
  void (*feed)(TlsEnd* end, const char* bytes, std::size_t size);
  /// Text for the other end; dropped unless the connection is open.
  void (*give)(TlsEnd* end, const char* text, std::size_t size);
  /// Moves bytes that have to be sent, or text of the other end. \return how many; 0: there are no more.
  std::size_t (*take_output)(TlsEnd* end, char* bytes, std::size_t most);
  std::size_t (*take_text)(TlsEnd* end, char* text, std::size_t most);
  TlsState (*state)(const TlsEnd* end);
  TlsFault (*fault)(const TlsEnd* end);
  const char* (*why)(const TlsEnd* end);  ///< as a clause about 'it', or about the text that is not in order
};

using TlsEntryPoint = const TlsFunctions* (*)();
inline constexpr char kTlsEntryPoint[] = "lrun_tls_functions_v1";
inline constexpr char kTlsLibrary[] = "liblrun_tls.so";
/// The most bytes of the other end before it is known.
inline constexpr std::size_t kMostTlsHandshake = std::size_t{256} << 10U;

}  // namespace lrun::launcher
