#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace lrun::test {

struct OpensslDeleter {
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};
template <class Type>
using Openssl = std::unique_ptr<Type, OpensslDeleter>;

/// The content of a certificate. Times in seconds from now.
struct Wish {
  std::string names = "DNS:localhost,IP:127.0.0.1";  ///< as in openssl's subjectAltName; empty: only the common name
  std::string use = "serverAuth";                    ///< as in openssl's extendedKeyUsage
  long from = -3600;
  long until = 3600;
  std::size_t rsa_bits = 0;  ///< of its key; 0: it is one of an elliptic curve
};

/// A certificate and its key, both also as files have them.
struct Identity {
  Openssl<X509> certificate;
  Openssl<EVP_PKEY> key;
  std::string certificate_text;
  std::string key_text;
};

/// An authority whose certificates exist as long as the test does.
class Authority {
 public:
  explicit Authority(const std::string& name);
  [[nodiscard]] Identity sign(const Wish& wish = {}) const;
  /// Of its own certificate.
  [[nodiscard]] const std::string& text() const { return own_.certificate_text; }

 private:
  Identity own_;
};

/// A self-signed one.
Identity self_signed(const Wish& wish);
/// The key as a file that wants a passphrase.
std::string locked(const EVP_PKEY& key);

/// The server's end of a TLS connection: bytes in, bytes out, and answers to whatever it is asked.
class TlsServerEnd {
 public:
  /// \param clients  the authority of the clients' certificates; null: none is requested.
  /// \param newest   a version of TLS; 0: any
  explicit TlsServerEnd(const Identity& identity, const Authority* clients = nullptr, int newest = 0);

  void feed(std::string_view bytes);
  void give(std::string_view words);
  void send_close();
  std::string take_output();

  /// All bytes from the client.
  [[nodiscard]] const std::string& words() const { return words_; }
  void forget_words() { words_.clear(); }

 private:
  Openssl<SSL_CTX> context_;
  Openssl<SSL> ssl_;
  std::string words_;
};

}  // namespace lrun::test
