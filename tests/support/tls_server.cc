#include "support/tls_server.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>

namespace lrun::test {
namespace {

std::string text_in(BIO* bio) {
  char* bytes = nullptr;
  const long size = ::BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

template <class Write>
std::string written(const Write& write) {
  const Openssl<BIO> bio(::BIO_new(::BIO_s_mem()));
  write(bio.get());
  return text_in(bio.get());
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = ::X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  ::X509_add_ext(certificate, extension, -1);
  ::X509_EXTENSION_free(extension);
}

void name(X509_NAME* whom, const std::string& text) {
  ::X509_NAME_add_entry_by_txt(whom, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1,
                               0);
}

/// \param issuer  null: the certificate's own key signs it
Identity make(const std::string& common_name, const Wish& wish, const Identity* issuer, bool is_authority) {
  static long serial = 0;
  EVP_PKEY* const key = wish.rsa_bits > 0 ? EVP_RSA_gen(wish.rsa_bits) : EVP_EC_gen("P-256");
  Identity made{Openssl<X509>(::X509_new()), Openssl<EVP_PKEY>(key), "", ""};
  X509* const certificate = made.certificate.get();
  ::X509_set_version(certificate, 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate), ++serial);
  ::X509_gmtime_adj(X509_getm_notBefore(certificate), wish.from);
  ::X509_gmtime_adj(X509_getm_notAfter(certificate), wish.until);
  ::X509_set_pubkey(certificate, made.key.get());
  name(::X509_get_subject_name(certificate), common_name);
  X509* const signer = issuer != nullptr ? issuer->certificate.get() : certificate;
  ::X509_set_issuer_name(certificate, ::X509_get_subject_name(signer));
  extend(certificate, signer, NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (!is_authority) extend(certificate, signer, NID_ext_key_usage, wish.use);
  if (!wish.names.empty() && !is_authority) extend(certificate, signer, NID_subject_alt_name, wish.names);
  ::X509_sign(certificate, issuer != nullptr ? issuer->key.get() : made.key.get(), ::EVP_sha256());
  made.certificate_text = written([&](BIO* bio) { ::PEM_write_bio_X509(bio, certificate); });
  made.key_text = written(
      [&](BIO* bio) { ::PEM_write_bio_PrivateKey(bio, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  return made;
}

}  // namespace

Authority::Authority(const std::string& name) : own_(make(name, {}, nullptr, true)) {}

Identity Authority::sign(const Wish& wish) const { return make("localhost", wish, &own_, false); }

Identity self_signed(const Wish& wish) { return make("localhost", wish, nullptr, false); }

std::string locked(const EVP_PKEY& key) {
  return written([&](BIO* bio) {
    std::string passphrase = "secret";
    ::PEM_write_bio_PrivateKey(bio, &key, ::EVP_aes_128_cbc(), nullptr, 0, nullptr, passphrase.data());
  });
}

TlsServerEnd::TlsServerEnd(const Identity& identity, const Authority* clients, int newest)
    : context_(::SSL_CTX_new(::TLS_server_method())) {
  if (newest != 0) {
    ::SSL_CTX_set_security_level(context_.get(), 0);
    ::SSL_CTX_set_min_proto_version(context_.get(), 0);
    ::SSL_CTX_set_max_proto_version(context_.get(), newest);
  }
  ::SSL_CTX_use_certificate(context_.get(), identity.certificate.get());
  ::SSL_CTX_use_PrivateKey(context_.get(), identity.key.get());
  if (clients != nullptr) {
    const Openssl<BIO> bio(::BIO_new_mem_buf(clients->text().data(), static_cast<int>(clients->text().size())));
    const Openssl<X509> authority(::PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context_.get()), authority.get());
    ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  ssl_.reset(::SSL_new(context_.get()));
  ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
  ::SSL_set_accept_state(ssl_.get());
}

void TlsServerEnd::feed(std::string_view bytes) {
  ::BIO_write(::SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  std::array<char, 4096> piece;
  std::size_t count = 0;
  while (::SSL_read_ex(ssl_.get(), piece.data(), piece.size(), &count) == 1) words_.append(piece.data(), count);
}

void TlsServerEnd::give(std::string_view words) {
  std::size_t count = 0;
  ::SSL_write_ex(ssl_.get(), words.data(), words.size(), &count);
}

void TlsServerEnd::send_close() { ::SSL_shutdown(ssl_.get()); }

std::string TlsServerEnd::take_output() {
  std::string all;
  std::array<char, 4096> piece;
  std::size_t count = 0;
  while (::BIO_read_ex(::SSL_get_wbio(ssl_.get()), piece.data(), piece.size(), &count) == 1) {
    all.append(piece.data(), count);
  }
  return all;
}

}  // namespace lrun::test
