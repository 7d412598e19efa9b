// In: bytes of the other end, and text for it. Out: bytes for the other end, its text, and why the connection failed.
// Called through the table of functions in entry_point.cc.
#include "store/tls/openssl_end.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>
#include <limits>
#include <utility>

#include "store/tls/certificate_text.h"
#include "store/tls/own_certificate.h"

namespace lrun::launcher {
namespace {

constexpr char kAlertRecord = 21;
constexpr char kHandshakeRecord = 22;
constexpr char kMajorVersion = 3;

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

TlsEnd::TlsEnd(const TlsQuestion& question) : host_(question.host), has_certificate_(question.certificate.size > 0) {
  // Its clean-up at exit would come after that of the program that loaded us.
  ::OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  ::ERR_clear_error();
  if (prepare(question)) {
    advance();
  } else if (state_ != TlsState::kFailed) {
    fail(TlsFault::kOther, "OpenSSL cannot begin a connection");
  }
}

bool TlsEnd::prepare(const TlsQuestion& question) {
  context_.reset(::SSL_CTX_new(::TLS_client_method()));
  if (!context_ || ::SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION) != 1) return false;
  TextFault fault = take_question(context_.get(), question);
  if (fault.fault != TlsFault::kNone) {
    fail(fault.fault, std::move(fault.why));
    return false;
  }
  ::SSL_CTX_set_options(context_.get(), SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_cert_cb(context_.get(), asked_for_ours, this);
  ssl_.reset(::SSL_new(context_.get()));
  in_ = ::BIO_new(::BIO_s_mem());
  out_ = ::BIO_new(::BIO_s_mem());
  if (!ssl_ || in_ == nullptr || out_ == nullptr) {
    ::BIO_free(in_);
    ::BIO_free(out_);
    in_ = out_ = nullptr;
    return false;
  }
  ::BIO_set_mem_eof_return(in_, -1);  // more may come
  ::SSL_set_bio(ssl_.get(), in_, out_);
  SSL_set_app_data(ssl_.get(), this);
  ::SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, verified);
  ::SSL_set_connect_state(ssl_.get());
  return expect_host();
}

bool TlsEnd::expect_host() {
  X509_VERIFY_PARAM* const wanted = ::SSL_get0_param(ssl_.get());
  // An authority between the host's and the root's may be the one that is trusted, as with etcd's own client.
  ::X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_PARTIAL_CHAIN);
  ::X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (is_address(host_)) return ::X509_VERIFY_PARAM_set1_ip_asc(wanted, host_.c_str()) == 1;
  return ::X509_VERIFY_PARAM_set1_host(wanted, host_.c_str(), 0) == 1 &&
         ::SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, host_.data()) == 1;
}

/// The first fault counts.
int TlsEnd::verified(int is_good, X509_STORE_CTX* chain) {
  if (is_good == 1) return 1;
  const auto* const ssl =
      static_cast<const SSL*>(::X509_STORE_CTX_get_ex_data(chain, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const end = static_cast<TlsEnd*>(SSL_get_app_data(ssl));
  CertificateFault fault = certificate_fault(chain, end->host_);
  end->fault_ = fault.fault;
  end->why_ = std::move(fault.why);
  return 0;
}

int TlsEnd::asked_for_ours(SSL* /*ssl*/, void* end) {
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
      ::BIO_write(in_, bytes.data(), static_cast<int>(bytes.size())) != static_cast<int>(bytes.size())) {
    return fail(TlsFault::kOther, "there is no memory for its data");
  }
  advance();
}

void TlsEnd::advance() {
  ::ERR_clear_error();
  if (state_ == TlsState::kHandshake) shake_hands();
  if (state_ == TlsState::kOpen) read_text();
}

void TlsEnd::shake_hands() {
  const int result = ::SSL_do_handshake(ssl_.get());
  if (result == 1) {
    state_ = TlsState::kOpen;
  } else if (::SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
    explain();
  }
}

void TlsEnd::read_text() {
  std::array<char, 16384> piece;
  std::size_t count = 0;
  while (::SSL_read_ex(ssl_.get(), piece.data(), piece.size(), &count) == 1) text_.append(piece.data(), count);
  const int error = ::SSL_get_error(ssl_.get(), 0);
  if (error == SSL_ERROR_ZERO_RETURN) {
    state_ = TlsState::kClosed;
  } else if (error != SSL_ERROR_WANT_READ) {
    explain();
  }
}

void TlsEnd::give(std::string_view text) {
  if (state_ != TlsState::kOpen || text.empty()) return;
  ::ERR_clear_error();
  std::size_t count = 0;
  if (::SSL_write_ex(ssl_.get(), text.data(), text.size(), &count) != 1 || count != text.size()) explain();
}

std::size_t TlsEnd::take_output(char* bytes, std::size_t most) {
  std::size_t count = 0;
  return out_ != nullptr && ::BIO_read_ex(out_, bytes, most, &count) == 1 ? count : 0;
}

/// verified() knows more about a certificate than OpenSSL's error.
void TlsEnd::explain() {
  state_ = TlsState::kFailed;
  if (fault_ != TlsFault::kNone) return;
  const unsigned long error = ::ERR_peek_error();
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET) {
    CertificateFault fault = alert_fault(reason - SSL_AD_REASON_OFFSET, has_certificate_, was_asked_for_ours_);
    return fail(fault.fault, std::move(fault.why));
  }
  if (reason == SSL_R_UNSUPPORTED_PROTOCOL) return fail(TlsFault::kOther, "it does not support TLS 1.2 or newer");
  const char* const words = ::ERR_reason_error_string(error);
  fail(TlsFault::kOther, std::string("TLS fails: ") + (words == nullptr ? "no reason given" : words));
}

void TlsEnd::fail(TlsFault fault, std::string why) {
  state_ = TlsState::kFailed;
  fault_ = fault;
  why_ = std::move(why);
}

}  // namespace lrun::launcher
