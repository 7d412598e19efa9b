// In: certificates and a key as text in PEM format. Out: a context of OpenSSL that uses them, or what is wrong with
// them. Called by TlsEnd.
#include "store/own_certificate.h"

#include <climits>
#include <memory>

namespace lrun::launcher {
namespace {

using Openssl = OpensslEntryPoints;

struct FreeParsed {
  const Openssl* openssl;
  void operator()(Openssl::Bio* bio) const { openssl->free_bio(bio); }
  void operator()(Openssl::Certificate* certificate) const { openssl->free_certificate(certificate); }
  void operator()(Openssl::Key* key) const { openssl->free_key(key); }
};
using Bio = std::unique_ptr<Openssl::Bio, FreeParsed>;
using Certificate = std::unique_ptr<Openssl::Certificate, FreeParsed>;

Bio reading(const Openssl& openssl, const std::string& text) {
  const bool fits = text.size() <= INT_MAX;
  return {fits ? openssl.bio_of(text.data(), static_cast<int>(text.size())) : nullptr, FreeParsed{&openssl}};
}

/// There is no person who could type one.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

/// \param is_locked  becomes true where only a passphrase would open it; then it is null, as at the end.
Certificate next_certificate(const Openssl& openssl, Openssl::Bio* bio, bool& is_locked) {
  return {openssl.read_certificate(bio, nullptr, no_passphrase, &is_locked), FreeParsed{&openssl}};
}

TextFault no_certificate(TlsFault fault, bool is_locked) {
  return {fault, is_locked ? "a certificate in it needs a passphrase, which lrun cannot ask for"
                           : "it contains no certificate in PEM format"};
}

/// By the last call: too weak a key, for example.
TextFault refused(const Openssl& openssl, TlsFault fault, const std::string& what) {
  const char* const why = openssl.error_reason(openssl.last_error());
  return {fault, what + " is refused: " + (why == nullptr ? "no reason given" : why)};
}

TextFault trust(const Openssl& openssl, Openssl::Context* context, const std::string& text) {
  if (text.empty()) {
    openssl.trust_system(context);
    return {};
  }
  const Bio bio = reading(openssl, text);
  int count = 0;
  bool is_locked = false;
  while (const Certificate certificate = next_certificate(openssl, bio.get(), is_locked)) {
    count += openssl.add_to_store(openssl.store_of(context), certificate.get());
  }
  return count > 0 && !is_locked ? TextFault() : no_certificate(TlsFault::kAuthorities, is_locked);
}

/// The first is ours, the others lead to its authority.
TextFault show(const Openssl& openssl, Openssl::Context* context, const std::string& text) {
  const Bio bio = reading(openssl, text);
  bool is_locked = false;
  const Certificate own = next_certificate(openssl, bio.get(), is_locked);
  if (!own) return no_certificate(TlsFault::kCertificate, is_locked);
  if (openssl.use_certificate(context, own.get()) != 1)
    return refused(openssl, TlsFault::kCertificate, "its certificate");
  while (const Certificate between = next_certificate(openssl, bio.get(), is_locked)) {
    if (openssl.context_control(context, Openssl::kAddToChain, 1, between.get()) != 1) {
      return refused(openssl, TlsFault::kCertificate, "a certificate behind its first");
    }
  }
  return is_locked ? no_certificate(TlsFault::kCertificate, is_locked) : TextFault();
}

TextFault prove(const Openssl& openssl, Openssl::Context* context, const std::string& text) {
  bool was_asked = false;
  const Bio bio = reading(openssl, text);
  const std::unique_ptr<Openssl::Key, FreeParsed> key(openssl.read_key(bio.get(), nullptr, no_passphrase, &was_asked),
                                                      FreeParsed{&openssl});
  if (was_asked) return {TlsFault::kKey, "its key needs a passphrase, which lrun cannot ask for"};
  if (!key) return {TlsFault::kKey, "it contains no private key in PEM format"};
  if (openssl.key_fits(openssl.certificate_of(context), key.get()) != 1) {
    return {TlsFault::kKey, "its key does not belong to the certificate"};
  }
  return openssl.use_key(context, key.get()) == 1 ? TextFault() : refused(openssl, TlsFault::kKey, "its key");
}

}  // namespace

TextFault use_texts(const Openssl& openssl, Openssl::Context* context, const PemTexts& texts) {
  TextFault fault = trust(openssl, context, texts.authorities);
  if (fault.fault == TlsFault::kNone && !texts.certificate.empty()) {
    fault = show(openssl, context, texts.certificate);
    if (fault.fault == TlsFault::kNone) {
      fault = prove(openssl, context, texts.key.empty() ? texts.certificate : texts.key);
    }
  }
  openssl.clear_errors();
  return fault;
}

}  // namespace lrun::launcher
