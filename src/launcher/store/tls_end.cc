// In: bytes of the other end, and text for it. Out: bytes for the other end, its text, and why the connection failed.
// Called by TlsSession.
#include "store/tls_end.h"

#include <array>
#include <limits>
#include <utility>

#include "base/numeric_address.h"
#include "store/certificate_text.h"

namespace lrun::launcher {
namespace {

using Openssl = OpensslEntryPoints;

constexpr char kAlertRecord = 21;
constexpr char kHandshakeRecord = 22;
constexpr char kMajorVersion = 3;

}  // namespace

TlsEnd::TlsEnd(const Openssl& openssl, std::string host, const PemTexts& texts)
    : openssl_(openssl),
      host_(std::move(host)),
      has_certificate_(!texts.certificate.empty()),
      context_(nullptr, Free{&openssl}),
      ssl_(nullptr, Free{&openssl}) {
  openssl_.init(Openssl::kNoCleanUpAtExit, nullptr);  // it would come after that of this program
  openssl_.clear_errors();
  if (prepare(texts)) {
    advance();
  } else if (state_ != TlsState::kFailed) {
    fail(TlsFault::kOther, "OpenSSL cannot begin a connection");
  }
}

bool TlsEnd::prepare(const PemTexts& texts) {
  context_.reset(openssl_.new_context(openssl_.client_method()));
  if (!context_ || openssl_.context_control(context_.get(), Openssl::kSetLeastVersion, Openssl::kTls1_2, nullptr) != 1)
    return false;
  TextFault fault = use_texts(openssl_, context_.get(), texts);
  if (fault.fault != TlsFault::kNone) {
    fail(fault.fault, std::move(fault.why));
    return false;
  }
  openssl_.set_options(context_.get(), Openssl::kNoRenegotiation);
  openssl_.on_certificate_request(context_.get(), asked_for_ours, this);
  ssl_.reset(openssl_.new_ssl(context_.get()));
  in_ = openssl_.new_bio(openssl_.memory());
  out_ = openssl_.new_bio(openssl_.memory());
  if (!ssl_ || in_ == nullptr || out_ == nullptr) {
    openssl_.free_bio(in_);
    openssl_.free_bio(out_);
    in_ = out_ = nullptr;
    return false;
  }
  openssl_.bio_control(in_, Openssl::kSetEndOfMemory, -1, nullptr);  // more may come
  openssl_.set_bios(ssl_.get(), in_, out_);
  openssl_.set_data(ssl_.get(), 0, this);
  openssl_.set_verify(ssl_.get(), Openssl::kVerifyPeer, verified);
  openssl_.be_client(ssl_.get());
  return expect_host();
}

bool TlsEnd::expect_host() {
  Openssl::Wanted* const wanted = openssl_.wanted_of(ssl_.get());
  // An authority between the host's and the root's may be the one that is trusted, as with etcd's own client.
  openssl_.set_flags(wanted, Openssl::kTrustPartialChain);
  openssl_.set_host_flags(wanted, Openssl::kWholeWildcardsInSubjectAltNames);
  if (is_numeric_address(host_)) return openssl_.want_address(wanted, host_.c_str()) == 1;
  return openssl_.want_host(wanted, host_.c_str(), 0) == 1 &&
         openssl_.control(ssl_.get(), Openssl::kSetHostName, 0, host_.data()) == 1;
}

/// The first fault counts.
int TlsEnd::verified(int is_good, Openssl::Chain* chain) {
  if (is_good == 1) return 1;
  const Openssl& openssl = *launcher::openssl();  // it calls us
  const auto* const ssl = static_cast<const Openssl::Ssl*>(openssl.chain_data(chain, openssl.index_of_ssl()));
  auto* const end = static_cast<TlsEnd*>(openssl.data_of(ssl, 0));
  CertificateFault fault = certificate_fault(openssl, chain, end->host_);
  end->fault_ = fault.fault;
  end->why_ = std::move(fault.why);
  return 0;
}

int TlsEnd::asked_for_ours(Openssl::Ssl* /*ssl*/, void* end) {
  static_cast<TlsEnd*>(end)->was_asked_for_ours_ = true;
  return 1;
}

/// Its first bytes are a record of the handshake, or an alert.
bool TlsEnd::is_tls(std::string_view bytes) const {
  for (std::size_t at = handshake_bytes_; at < 2 && at - handshake_bytes_ < bytes.size(); ++at) {
    const char byte = bytes[at - handshake_bytes_];
    if (at == 0 ? byte != kHandshakeRecord && byte != kAlertRecord : byte != kMajorVersion) return false;
  }
  return true;
}

void TlsEnd::feed(std::string_view bytes) {
  if (state_ == TlsState::kFailed || state_ == TlsState::kClosed) return;
  if (state_ == TlsState::kHandshake) {
    if (!is_tls(bytes)) return fail(TlsFault::kNoTls, "it does not speak TLS");
    handshake_bytes_ += bytes.size();
    if (handshake_bytes_ > kMostTlsHandshake) return fail(TlsFault::kOther, "it does not finish the TLS handshake");
  }
  if (bytes.size() > std::numeric_limits<int>::max() ||
      openssl_.bio_write(in_, bytes.data(), static_cast<int>(bytes.size())) != static_cast<int>(bytes.size())) {
    return fail(TlsFault::kOther, "there is no memory for its data");
  }
  advance();
}

void TlsEnd::advance() {
  openssl_.clear_errors();
  if (state_ == TlsState::kHandshake) shake_hands();
  if (state_ == TlsState::kOpen) read_text();
}

void TlsEnd::shake_hands() {
  const int result = openssl_.shake_hands(ssl_.get());
  if (result == 1) {
    state_ = TlsState::kOpen;
  } else if (openssl_.error_of(ssl_.get(), result) != Openssl::kWantsRead) {
    explain();
  }
}

void TlsEnd::read_text() {
  std::array<char, 16384> piece;
  std::size_t count = 0;
  while (openssl_.read(ssl_.get(), piece.data(), piece.size(), &count) == 1) text_.append(piece.data(), count);
  const int error = openssl_.error_of(ssl_.get(), 0);
  if (error == Openssl::kEnd) {
    state_ = TlsState::kClosed;
  } else if (error != Openssl::kWantsRead) {
    explain();
  }
}

void TlsEnd::give(std::string_view text) {
  if (state_ != TlsState::kOpen || text.empty()) return;
  openssl_.clear_errors();
  std::size_t count = 0;
  if (openssl_.write(ssl_.get(), text.data(), text.size(), &count) != 1 || count != text.size()) explain();
}

std::string TlsEnd::take_output() {
  std::string all;
  std::array<char, 16384> piece;
  std::size_t count = 0;
  while (out_ != nullptr && openssl_.bio_read(out_, piece.data(), piece.size(), &count) == 1) {
    all.append(piece.data(), count);
  }
  return all;
}

std::string TlsEnd::take_text() { return std::exchange(text_, {}); }

/// verified() knows more about a certificate than OpenSSL's error.
void TlsEnd::explain() {
  state_ = TlsState::kFailed;
  if (fault_ != TlsFault::kNone) return;
  const unsigned long error = openssl_.first_error();
  const int reason = openssl_.reason_of(error);
  if (openssl_.is_of_tls(error) && reason > Openssl::kFirstAlert) {
    CertificateFault fault =
        alert_fault(openssl_, reason - Openssl::kFirstAlert, has_certificate_, was_asked_for_ours_);
    return fail(fault.fault, std::move(fault.why));
  }
  if (reason == Openssl::kUnsupportedProtocol) return fail(TlsFault::kOther, "it does not support TLS 1.2 or newer");
  const char* const words = openssl_.error_reason(error);
  fail(TlsFault::kOther, std::string("TLS fails: ") + (words == nullptr ? "no reason given" : words));
}

void TlsEnd::fail(TlsFault fault, std::string why) {
  state_ = TlsState::kFailed;
  fault_ = fault;
  why_ = std::move(why);
}

}  // namespace lrun::launcher
