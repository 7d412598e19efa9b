#pragma once

#include <cstddef>

namespace lrun::launcher {

/// The seam to liblrun_tls.so, which holds everything that touches OpenSSL: a launcher that asks nobody over TLS
/// neither links nor loads it. Plain C, as each side has a C++ library of its own inside; both are of one build.
/// Nothing here throws, blocks or touches a socket: bytes of the other end go in, bytes for it come out. One thread.
struct TlsEnd;  ///< our end of one connection; the library's

struct TlsText {
  const char* bytes = nullptr;
  std::size_t size = 0;  ///< 0: there is none
};

/// Whom we want to speak to, and who we are. Certificates and keys are text in PEM format.
struct TlsQuestion {
  const char* host = nullptr;  ///< a name, or a numeric address, that the other end's certificate has to be for
  TlsText authorities;         ///< that may have signed it; none: those that this system trusts
  TlsText certificate;         ///< ours, and those between it and its authority; none: we have none to show
  TlsText key;                 ///< of it; none: in the same text
};

enum class TlsState : int {
  kGreeting,  ///< neither end knows the other yet
  kOpen,      ///< the other end is who it has to be
  kClosed,    ///< it has said that it ends
  kFailed,    ///< it is of no use: fault() and why()
};

enum class TlsFault : int {
  kNone,
  kAuthorities,     ///< of the question: not in order
  kCertificate,     ///< the same
  kKey,             ///< the same
  kNoTls,           ///< the other end speaks something else
  kUntrusted,       ///< nobody whom we trust has signed its certificate
  kTime,            ///< its certificate is not valid now
  kName,            ///< its certificate is for somebody else
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
  /// Words for the other end; dropped unless it is open.
  void (*give)(TlsEnd* end, const char* words, std::size_t size);
  /// Moves bytes that are to be sent, or words of the other end. \return how many; 0: there are no more.
  std::size_t (*take_output)(TlsEnd* end, char* bytes, std::size_t most);
  std::size_t (*take_words)(TlsEnd* end, char* words, std::size_t most);
  TlsState (*state)(const TlsEnd* end);
  TlsFault (*fault)(const TlsEnd* end);
  const char* (*why)(const TlsEnd* end);  ///< as a clause about 'it', or about the text that is not in order
};

using TlsEntryPoint = const TlsFunctions* (*)();
inline constexpr char kTlsEntryPoint[] = "lrun_tls_functions_v1";
inline constexpr char kTlsLibrary[] = "liblrun_tls.so";
/// What the other end may say before it is known.
inline constexpr std::size_t kMostTlsGreeting = std::size_t{256} << 10U;

}  // namespace lrun::launcher
