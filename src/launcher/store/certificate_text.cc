// In: a certificate that OpenSSL rejects, or an alert of the other end. Out: the fault, with a clause about it. Called
// by TlsEnd.
#include "store/certificate_text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostShown = 100;
constexpr int kMostNames = 8;

using Openssl = OpensslEntryPoints;

struct FreeShown {
  const Openssl* openssl;
  void operator()(Openssl::Bio* bio) const { openssl->free_bio(bio); }
  void operator()(Openssl::Names* names) const { openssl->free_names(names); }
};

/// Anyone may have written the text of a certificate.
std::string harmless(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter < ' ' || letter > '~' || letter == '\''; }, '?');
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return "'" + text + "'";
}

std::string name_text(const Openssl& openssl, const Openssl::Name* name) {
  const std::unique_ptr<Openssl::Bio, FreeShown> bio(openssl.new_bio(openssl.memory()), FreeShown{&openssl});
  if (!bio || openssl.print_name(bio.get(), name, 0, Openssl::kNameAsInRfc2253) < 0) return "an unknown authority";
  char* bytes = nullptr;
  const long size = openssl.bio_control(bio.get(), Openssl::kGetMemory, 0, static_cast<void*>(&bytes));
  return harmless({bytes, static_cast<std::size_t>(std::max(size, 0L))});
}

std::string day_text(const Openssl& openssl, const Openssl::Time* time) {
  std::tm parts{};
  std::array<char, 32> text{};
  if (time == nullptr || openssl.parts_of_time(time, &parts) != 1) return "an unknown date";
  return {text.data(), std::strftime(text.data(), text.size(), "%F %H:%M UTC", &parts)};
}

std::string address_text(const std::string& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_long = bytes.size() == sizeof(in6_addr);
  if (!is_long && bytes.size() != sizeof(in_addr)) return "an address";
  return ::inet_ntop(is_long ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size());
}

/// The hosts that the certificate is for: 'e1', '10.0.0.1'.
std::string names_in(const Openssl& openssl, const Openssl::Certificate* certificate) {
  const std::unique_ptr<Openssl::Names, FreeShown> names(
      static_cast<Openssl::Names*>(openssl.extension_of(certificate, Openssl::kSubjectAltName, nullptr, nullptr)),
      FreeShown{&openssl});
  std::string text;
  const int count = names ? openssl.count_of(names.get()) : 0;
  for (int i = 0; i < std::min(count, kMostNames); ++i) {
    const auto* const name = static_cast<const Openssl::GeneralName*>(openssl.name_at(names.get(), i));
    if (name->type != Openssl::kDnsName && name->type != Openssl::kIpAddress) continue;
    const std::string bytes{reinterpret_cast<const char*>(openssl.bytes_of(name->text)),
                            static_cast<std::size_t>(openssl.size_of(name->text))};
    text += text.empty() ? "" : ", ";
    text += harmless(name->type == Openssl::kDnsName ? bytes : address_text(bytes));
  }
  return text.empty() ? "no host" : text + (count > kMostNames ? " and others" : "");
}

}  // namespace

CertificateFault certificate_fault(const Openssl& openssl, const Openssl::Chain* chain, const std::string& host) {
  const int error = openssl.chain_error(chain);
  const Openssl::Certificate* const certificate = openssl.chain_certificate(chain);
  const bool is_own = openssl.chain_depth(chain) == 0;
  if (certificate == nullptr) return {TlsFault::kOther, "it presents no certificate"};
  const std::string whose =
      is_own ? "its certificate"
             : "the certificate of its authority " + name_text(openssl, openssl.subject_of(certificate));
  switch (error) {
    case Openssl::kExpired:
      return {TlsFault::kTime, whose + " expired on " + day_text(openssl, openssl.valid_until(certificate))};
    case Openssl::kNotYetValid:
      return {TlsFault::kTime, whose + " is not valid before " + day_text(openssl, openssl.valid_from(certificate))};
    case Openssl::kOtherHost:
    case Openssl::kOtherAddress:
      return {TlsFault::kName, whose + " is for " + names_in(openssl, certificate) + " and not for '" + host + "'"};
    case Openssl::kSelfSigned:
    case Openssl::kSelfSignedInChain:
    case Openssl::kNoIssuer:
    case Openssl::kNoIssuerHere:
    case Openssl::kNoChain:
    case Openssl::kBadSignature:
      return {TlsFault::kUntrusted, "its certificate is signed by " +
                                        name_text(openssl, openssl.issuer_of(certificate)) +
                                        ", which is not trusted here"};
    default:
      return {TlsFault::kOther, whose + " is refused: " + openssl.verify_text(error)};
  }
}

CertificateFault alert_fault(const Openssl& openssl, int alert, bool has_certificate, bool was_asked) {
  if (was_asked && !has_certificate) return {TlsFault::kOwnCertificate, "it requires a client certificate"};
  const std::string text = openssl.alert_text(alert);
  if (alert == Openssl::kProtocolVersion) return {TlsFault::kOther, "it does not support TLS 1.2 or newer"};
  const bool about_ours = was_asked && alert >= Openssl::kHandshakeFailure && alert <= Openssl::kAccessDenied;
  if (about_ours) return {TlsFault::kOwnCertificate, "it rejects our certificate: " + text};
  return {TlsFault::kOther, "it ends the TLS connection: " + text};
}

}  // namespace lrun::launcher
