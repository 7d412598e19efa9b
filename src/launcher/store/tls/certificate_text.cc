// In: a certificate that OpenSSL rejects, or an alert of the other end. Out: the fault, with a clause about it. Called
// by TlsEnd.
#include "store/tls/certificate_text.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostShown = 100;
constexpr int kMostNames = 8;

struct FreeShown {
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(GENERAL_NAMES* names) const { ::GENERAL_NAMES_free(names); }
};

/// Anyone may have written the text of a certificate.
std::string harmless(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter < ' ' || letter > '~' || letter == '\''; }, '?');
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return "'" + text + "'";
}

std::string name_text(const X509_NAME* name) {
  const std::unique_ptr<BIO, FreeShown> bio(::BIO_new(::BIO_s_mem()));
  if (!bio || ::X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) return "an unknown authority";
  char* bytes = nullptr;
  const long size = ::BIO_get_mem_data(bio.get(), &bytes);
  return harmless({bytes, static_cast<std::size_t>(std::max(size, 0L))});
}

std::string day_text(const ASN1_TIME* time) {
  std::tm parts{};
  std::array<char, 32> text{};
  if (time == nullptr || ::ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown date";
  return {text.data(), std::strftime(text.data(), text.size(), "%F %H:%M UTC", &parts)};
}

std::string text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(::ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(::ASN1_STRING_length(text))};
}

std::string address_text(const ASN1_OCTET_STRING* address) {
  const std::string bytes = text_of(address);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_long = bytes.size() == sizeof(in6_addr);
  if (!is_long && bytes.size() != sizeof(in_addr)) return "an address";
  return ::inet_ntop(is_long ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size());
}

/// The hosts that the certificate is for: 'e1', '10.0.0.1'.
std::string names_in(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeShown> names(
      static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string text;
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  for (int i = 0; i < std::min(count, kMostNames); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS && name->type != GEN_IPADD) continue;
    text += text.empty() ? "" : ", ";
    text += harmless(name->type == GEN_DNS ? text_of(name->d.dNSName) : address_text(name->d.iPAddress));
  }
  return text.empty() ? "no host" : text + (count > kMostNames ? " and others" : "");
}

}  // namespace

CertificateFault certificate_fault(X509_STORE_CTX* chain, const std::string& host) {
  const int error = ::X509_STORE_CTX_get_error(chain);
  const X509* const certificate = ::X509_STORE_CTX_get_current_cert(chain);
  const bool is_own = ::X509_STORE_CTX_get_error_depth(chain) == 0;
  if (certificate == nullptr) return {TlsFault::kOther, "it presents no certificate"};
  const std::string whose =
      is_own ? "its certificate" : "the certificate of its authority " + name_text(X509_get_subject_name(certificate));
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return {TlsFault::kTime, whose + " expired on " + day_text(::X509_get0_notAfter(certificate))};
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return {TlsFault::kTime, whose + " is not valid before " + day_text(::X509_get0_notBefore(certificate))};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return {TlsFault::kName, whose + " is for " + names_in(certificate) + " and not for '" + host + "'"};
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return {TlsFault::kUntrusted, "its certificate is signed by " + name_text(X509_get_issuer_name(certificate)) +
                                        ", which is not trusted here"};
    default:
      return {TlsFault::kOther, whose + " is refused: " + ::X509_verify_cert_error_string(error)};
  }
}

CertificateFault alert_fault(int alert, bool has_certificate, bool was_asked) {
  if (was_asked && !has_certificate) return {TlsFault::kOwnCertificate, "it requires a client certificate"};
  const std::string text = ::SSL_alert_desc_string_long(alert);
  if (alert == SSL_AD_PROTOCOL_VERSION) return {TlsFault::kOther, "it does not support TLS 1.2 or newer"};
  const bool about_ours = was_asked && alert >= SSL_AD_HANDSHAKE_FAILURE && alert <= SSL_AD_ACCESS_DENIED;
  if (about_ours) return {TlsFault::kOwnCertificate, "it rejects our certificate: " + text};
  return {TlsFault::kOther, "it ends the TLS connection: " + text};
}

}  // namespace lrun::launcher
