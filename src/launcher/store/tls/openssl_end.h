#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "store/tls_interface.h"

namespace lrun::launcher {

struct SslDeleter {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};

/// The client's end of a TLS connection, of version 1.2 or newer, whose other end has to prove that it is the host that
/// we want. A failure is final; the bytes that are left to be sent then tell the other end why.
struct TlsEnd {
 public:
  explicit TlsEnd(const TlsQuestion& question);
  TlsEnd(const TlsEnd&) = delete;
  TlsEnd& operator=(const TlsEnd&) = delete;

  void feed(std::string_view bytes);
  void give(std::string_view text);
  std::size_t take_output(char* bytes, std::size_t most);
  [[nodiscard]] std::string& text() { return text_; }

  [[nodiscard]] TlsState state() const { return state_; }
  [[nodiscard]] TlsFault fault() const { return fault_; }
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  static int verified(int is_good, X509_STORE_CTX* chain);
  static int asked_for_ours(SSL* ssl, void* end);

  bool prepare(const TlsQuestion& question);
  bool expect_host();
  [[nodiscard]] bool is_tls(std::string_view bytes) const;
  void advance();
  void shake_hands();
  void read_text();
  void explain();
  void fail(TlsFault fault, std::string why);

  std::string host_;
  bool has_certificate_;
  bool was_asked_for_ours_ = false;
  std::unique_ptr<SSL_CTX, SslDeleter> context_;
  std::unique_ptr<SSL, SslDeleter> ssl_;
  BIO* in_ = nullptr;                ///< ssl_'s
  BIO* out_ = nullptr;               ///< ssl_'s
  std::size_t handshake_bytes_ = 0;  ///< bytes of the other end so far
  TlsState state_ = TlsState::kHandshake;
  TlsFault fault_ = TlsFault::kNone;
  std::string text_;
  std::string why_;
};

}  // namespace lrun::launcher
