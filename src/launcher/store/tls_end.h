#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "store/openssl.h"
#include "store/own_certificate.h"
#include "store/tls_fault.h"

namespace lrun::launcher {

enum class TlsState : int {
  kHandshake,  ///< neither end knows the other yet
  kOpen,       ///< the other end has proved its identity
  kClosed,     ///< the other end has closed it
  kFailed,     ///< it is of no use: fault() and why()
};

/// The most bytes of the other end before it is known.
inline constexpr std::size_t kMostTlsHandshake = std::size_t{256} << 10U;

/// The client's end of a TLS connection, of version 1.2 or newer, whose other end has to prove that it is the host that
/// we want. A failure is final; the bytes that are left to be sent then tell the other end why. It does not throw,
/// block or touch a socket: bytes of the other end go in, bytes for it come out.
class TlsEnd {
 public:
  /// \param host  a name or a numeric address, for which the other end's certificate has to be
  TlsEnd(const OpensslEntryPoints& openssl, std::string host, const PemTexts& texts);
  TlsEnd(const TlsEnd&) = delete;
  TlsEnd& operator=(const TlsEnd&) = delete;

  void feed(std::string_view bytes);
  /// Dropped unless the connection is open.
  void give(std::string_view text);
  std::string take_output();
  std::string take_text();

  [[nodiscard]] TlsState state() const { return state_; }
  [[nodiscard]] TlsFault fault() const { return fault_; }
  /// As a clause about 'it', or about the text that is not in order.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  struct Free {
    const OpensslEntryPoints* openssl = nullptr;
    void operator()(OpensslEntryPoints::Context* context) const { openssl->free_context(context); }
    void operator()(OpensslEntryPoints::Ssl* ssl) const { openssl->free_ssl(ssl); }
  };
  static int verified(int is_good, OpensslEntryPoints::Chain* chain);
  static int asked_for_ours(OpensslEntryPoints::Ssl* ssl, void* end);

  bool prepare(const PemTexts& texts);
  bool expect_host();
  [[nodiscard]] bool is_tls(std::string_view bytes) const;
  void advance();
  void shake_hands();
  void read_text();
  void explain();
  void fail(TlsFault fault, std::string why);

  const OpensslEntryPoints& openssl_;
  std::string host_;
  bool has_certificate_;
  bool was_asked_for_ours_ = false;
  std::unique_ptr<OpensslEntryPoints::Context, Free> context_;
  std::unique_ptr<OpensslEntryPoints::Ssl, Free> ssl_;
  OpensslEntryPoints::Bio* in_ = nullptr;   ///< ssl_'s
  OpensslEntryPoints::Bio* out_ = nullptr;  ///< ssl_'s
  std::size_t handshake_bytes_ = 0;         ///< bytes of the other end so far
  TlsState state_ = TlsState::kHandshake;
  TlsFault fault_ = TlsFault::kNone;
  std::string text_;
  std::string why_;
};

}  // namespace lrun::launcher
