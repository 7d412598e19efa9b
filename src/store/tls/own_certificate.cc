#include "store/tls/own_certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <climits>
#include <memory>

namespace lrun {
namespace {

struct Free {
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, Free>;
using Certificate = std::unique_ptr<X509, Free>;

Bio reading(const TlsText& text) {
  return Bio(text.size > INT_MAX ? nullptr : ::BIO_new_mem_buf(text.bytes, static_cast<int>(text.size)));
}

/// Nobody is there who could type one.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

Certificate next_certificate(BIO* bio) { return Certificate(::PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)); }

TextFault trust(SSL_CTX* context, const TlsText& text) {
  if (text.size == 0) {
    ::SSL_CTX_set_default_verify_paths(context);
    return {};
  }
  const Bio bio = reading(text);
  int count = 0;
  while (const Certificate certificate = next_certificate(bio.get())) {
    count += ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context), certificate.get());
  }
  return count > 0 ? TextFault() : TextFault{TlsFault::kAuthorities, "there is no certificate in it, in PEM format"};
}

/// The first is ours, the others lead to its authority.
bool show(SSL_CTX* context, const TlsText& text) {
  const Bio bio = reading(text);
  const Certificate own = next_certificate(bio.get());
  if (!own || ::SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (const Certificate between = next_certificate(bio.get())) {
    if (::SSL_CTX_add1_chain_cert(context, between.get()) != 1) return false;
  }
  return true;
}

TextFault prove(SSL_CTX* context, const TlsText& text) {
  bool was_asked = false;
  const Bio bio = reading(text);
  const std::unique_ptr<EVP_PKEY, Free> key(::PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &was_asked));
  if (was_asked) return {TlsFault::kKey, "its key is locked with a passphrase, for which nobody can be asked"};
  if (!key) return {TlsFault::kKey, "there is no private key in it, in PEM format"};
  const bool belongs = ::SSL_CTX_use_PrivateKey(context, key.get()) == 1 && ::SSL_CTX_check_private_key(context) == 1;
  return belongs ? TextFault() : TextFault{TlsFault::kKey, "its key does not belong to the certificate"};
}

}  // namespace

TextFault take_question(SSL_CTX* context, const TlsQuestion& question) {
  TextFault fault = trust(context, question.authorities);
  if (fault.fault == TlsFault::kNone && question.certificate.size > 0) {
    if (!show(context, question.certificate)) {
      fault = {TlsFault::kCertificate, "there is no certificate in it, in PEM format"};
    } else {
      fault = prove(context, question.key.size > 0 ? question.key : question.certificate);
    }
  }
  ::ERR_clear_error();
  return fault;
}

}  // namespace lrun
