// In: certificates and a key as text in PEM format. Out: a context of OpenSSL that uses them, or what is wrong with
// them. Called by TlsEnd.
#include "store/tls/own_certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <climits>
#include <memory>
#include <string>

namespace lrun::launcher {
namespace {

struct FreeParsed {
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreeParsed>;
using Certificate = std::unique_ptr<X509, FreeParsed>;

Bio reading(const TlsText& text) {
  return Bio(text.size > INT_MAX ? nullptr : ::BIO_new_mem_buf(text.bytes, static_cast<int>(text.size)));
}

/// There is no person who could type one.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

/// \param is_locked  becomes true where only a passphrase would open it; then it is null, as at the end.
Certificate next_certificate(BIO* bio, bool& is_locked) {
  return Certificate(::PEM_read_bio_X509(bio, nullptr, no_passphrase, &is_locked));
}

TextFault no_certificate(TlsFault fault, bool is_locked) {
  return {fault, is_locked ? "a certificate in it needs a passphrase, which lrun cannot ask for"
                           : "it contains no certificate in PEM format"};
}

/// By the last call: too weak a key, for example.
TextFault refused(TlsFault fault, const std::string& what) {
  const char* const why = ::ERR_reason_error_string(::ERR_peek_last_error());
  return {fault, what + " is refused: " + (why == nullptr ? "no reason given" : why)};
}

TextFault trust(SSL_CTX* context, const TlsText& text) {
  if (text.size == 0) {
    ::SSL_CTX_set_default_verify_paths(context);
    return {};
  }
  const Bio bio = reading(text);
  int count = 0;
  bool is_locked = false;
  while (const Certificate certificate = next_certificate(bio.get(), is_locked)) {
    count += ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context), certificate.get());
  }
  return count > 0 && !is_locked ? TextFault() : no_certificate(TlsFault::kAuthorities, is_locked);
}

/// The first is ours, the others lead to its authority.
TextFault show(SSL_CTX* context, const TlsText& text) {
  const Bio bio = reading(text);
  bool is_locked = false;
  const Certificate own = next_certificate(bio.get(), is_locked);
  if (!own) return no_certificate(TlsFault::kCertificate, is_locked);
  if (::SSL_CTX_use_certificate(context, own.get()) != 1) return refused(TlsFault::kCertificate, "its certificate");
  while (const Certificate between = next_certificate(bio.get(), is_locked)) {
    if (::SSL_CTX_add1_chain_cert(context, between.get()) != 1) {
      return refused(TlsFault::kCertificate, "a certificate behind its first");
    }
  }
  return is_locked ? no_certificate(TlsFault::kCertificate, is_locked) : TextFault();
}

TextFault prove(SSL_CTX* context, const TlsText& text) {
  bool was_asked = false;
  const Bio bio = reading(text);
  const std::unique_ptr<EVP_PKEY, FreeParsed> key(
      ::PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &was_asked));
  if (was_asked) return {TlsFault::kKey, "its key needs a passphrase, which lrun cannot ask for"};
  if (!key) return {TlsFault::kKey, "it contains no private key in PEM format"};
  if (::X509_check_private_key(::SSL_CTX_get0_certificate(context), key.get()) != 1) {
    return {TlsFault::kKey, "its key does not belong to the certificate"};
  }
  return ::SSL_CTX_use_PrivateKey(context, key.get()) == 1 ? TextFault() : refused(TlsFault::kKey, "its key");
}

}  // namespace

TextFault take_question(SSL_CTX* context, const TlsQuestion& question) {
  TextFault fault = trust(context, question.authorities);
  if (fault.fault == TlsFault::kNone && question.certificate.size > 0) {
    fault = show(context, question.certificate);
    if (fault.fault == TlsFault::kNone) {
      fault = prove(context, question.key.size > 0 ? question.key : question.certificate);
    }
  }
  ::ERR_clear_error();
  return fault;
}

}  // namespace lrun::launcher
