// In: requests of EtcdElection. Out: bytes for a member of an etcd, and its answers. Called by the election and by the
// loop; EtcdEndpoints chooses the member, EtcdLogin gives the token.
#include "store/etcd_client.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "wire/connect.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kEtcdReadBytes = std::size_t{16} << 10U;
constexpr Duration kPauseOfRounds(200);  // between two rounds through the endpoints
constexpr int kNotFound = 404;
constexpr int kBadGateway = 502;
constexpr int kGatewayTimeout = 504;
constexpr const char* kVersionHint =
    "--rdzv-backend etcd needs the JSON gateway of an etcd v3, which 3.4 and newer have";
constexpr const char* kNoEtcdHint =
    "start etcd there, or name its client address in '--rdzv-endpoint'; without etcd, leave '--rdzv-backend etcd' out";
constexpr const char* kTlsHint = "write '--rdzv-conf protocol=https' for an etcd that uses TLS";
constexpr const char* kNoTlsHint = "leave out '--rdzv-conf protocol=https' for an etcd without TLS";

/// Another member of the cluster may do better, or this one a moment later.
bool is_passing(const EtcdAnswer& answer) {
  constexpr int kPassing[] = {kEtcdCancelled, kEtcdUnknown,  kEtcdDeadlineExceeded, kEtcdResourceExhausted,
                              kEtcdAborted,   kEtcdInternal, kEtcdUnavailable};
  return std::find(std::begin(kPassing), std::end(kPassing), answer.code) != std::end(kPassing);
}

/// Empty: the other end is not an etcd.
std::optional<EtcdAnswer> answer_in(const HttpResponse& response) {
  constexpr int kHundred = 100;
  std::optional<EtcdAnswer> answer = etcd_answer_from_json(response.body);
  return answer && (response.status / kHundred == 2 || !answer->error.empty()) ? answer : std::nullopt;
}

std::string http_text(const EtcdRequest& request, const EtcdEndpoint& endpoint, const std::string& token) {
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? "[" + endpoint.host + "]" : endpoint.host;
  return "POST " + request.path + " HTTP/1.1\r\nHost: " + host + ":" + std::to_string(endpoint.port) +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n" +
         (token.empty() ? "" : "Authorization: " + token + "\r\n") + "\r\n" + request.body;
}

}  // namespace

EtcdClient::EtcdClient(EventLoop& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      endpoints_(options_.endpoints, options_.start),
      login_(options_.user, options_.password),
      connector_(loop) {}

void EtcdClient::ask(EtcdRequest request, Duration limit, Done done) {
  pending_.push_back({std::move(request), steady_now() + limit, std::move(done)});
  if (!busy_ && !next_.armed()) next_ = loop_.after(Duration::zero(), [this] { go_on(); });
}

void EtcdClient::forget_all() {
  pending_.clear();
  next_.cancel();
  disconnect();
}

void EtcdClient::go_on() {
  if (busy_ || pending_.empty()) return;
  busy_ = true;
  socket_ ? send() : connect();
}

Duration EtcdClient::time_left() const {
  const auto left = std::chrono::ceil<Duration>(pending_.front().give_up - steady_now());
  return std::clamp(left, Duration(1), options_.attempt);
}

void EtcdClient::connect() {
  const EtcdEndpoint& endpoint = endpoints_.current();
  if (options_.tls) {
    // Our files are read for every connection, so that renewed ones count. They may be of no use.
    tls_.emplace(*options_.tls, endpoint.host);
    if (!tls_->refusal().empty()) return fail_tls();
  }
  connector_.connect(
      {.host = endpoint.host, .port = endpoint.port, .limit = options_.attempt, .give_up = pending_.front().give_up},
      [this](SocketConnector::Result result) { connected(std::move(result)); });
}

void EtcdClient::connected(SocketConnector::Result result) {
  if (!result.socket) {
    return fail(result.error == ECONNREFUSED ? Failure::kRefused : Failure::kPassing, result.trouble);
  }
  socket_ = std::move(result.socket);
  readable_ = loop_.on_readable(socket_.get(), [this] { read(); });
  tls_ ? begin_tls() : send();
}

void EtcdClient::begin_tls() {
  out_.tail() = tls_->take_output();
  attempt_limit_ = loop_.after(
      time_left(), [this] { fail(Failure::kPassing, "no answer to the TLS handshake from " + endpoints_.text()); });
  flush();
}

void EtcdClient::send() {
  logs_in_ = login_.is_due();
  reader_ = HttpResponseReader();
  std::string text =
      http_text(logs_in_ ? login_.request() : pending_.front().request, endpoints_.current(), login_.token());
  if (tls_) {
    tls_->give(text);
    text = tls_->take_output();
  }
  out_.tail() += text;
  attempt_limit_ = loop_.after(time_left(), [this] {
    fail(Failure::kPassing, endpoints_.text() + " is connected and does not answer: has etcd lost its quorum?");
  });
  flush();
}

/// A connection that breaks is seen where it is read.
void EtcdClient::flush() {
  if (!out_.send_to(socket_.get()) || out_.empty()) return writable_.cancel();
  if (!writable_.armed()) writable_ = loop_.on_writable(socket_.get(), [this] { flush(); });
}

void EtcdClient::read() {
  char bytes[kEtcdReadBytes];
  const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (!busy_) return disconnect();  // closed by etcd between two requests, or bytes that answer none
  if (count <= 0) return end_of_connection();
  has_answered_ = true;
  const std::string_view received(bytes, static_cast<std::size_t>(count));
  tls_ ? decrypt(received) : feed(received, false);
}

void EtcdClient::decrypt(std::string_view bytes) {
  const bool was_open = tls_->is_open();
  tls_->feed(bytes);
  out_.tail() += tls_->take_output();
  if (!tls_->refusal().empty()) return fail_tls();
  if (!was_open && tls_->is_open()) return send();  // the request follows the handshake
  flush();
  if (was_open) feed(tls_->take_text(), tls_->is_closed());
}

void EtcdClient::feed(std::string_view bytes, bool is_end) {
  auto response = reader_.feed(bytes);
  if (!response && is_end) response = reader_.end();
  if (response) return take(*response);
  if (!reader_.refusal().empty()) {
    return fail(Failure::kMistake, endpoints_.text() + " is not an etcd: " + reader_.refusal(), kVersionHint);
  }
  if (is_end) fail(Failure::kPassing, endpoints_.text() + " closed the connection");
}

void EtcdClient::end_of_connection() {
  if (has_answered_) {
    // It is the end of an answer only where no one could have cut it off.
    if (const auto response = tls_ ? std::nullopt : reader_.end()) return take(*response);
    return fail(Failure::kPassing, endpoints_.text() + " closed the connection");
  }
  fail(Failure::kWordless, endpoints_.text() + " closed the connection without an answer",
       tls_ ? kNoTlsHint : kTlsHint);
}

void EtcdClient::take(const HttpResponse& response) {
  using Kind = EtcdLogin::Verdict::Kind;
  attempt_limit_.cancel();
  own_address_ = ends_of_connection(socket_.get()).own;
  if (!response.keeps_connection) disconnect();
  busy_ = true;
  const std::optional<EtcdAnswer> answer = answer_in(response);
  if (!answer) return take_foreign(response);
  if (is_passing(*answer)) return fail(Failure::kPassing, etcd_error_text(*answer, endpoints_.text()));
  endpoints_.answered();
  tls_works_ = options_.tls.has_value();
  last_error_.clear();
  const EtcdLogin::Verdict verdict = logs_in_ ? login_.take_token(*answer) : login_.judge(*answer);
  switch (verdict.kind) {
    case Kind::kAgain:
      return socket_ ? send() : connect();
    case Kind::kFail:
      return fail(Failure::kPassing, verdict.why);
    case Kind::kRefuse:
      return refuse(verdict.why, verdict.hint);
    case Kind::kAnswer:
      return finish({.answer = *answer});
  }
}

/// The other end is not an etcd of version 3.
void EtcdClient::take_foreign(const HttpResponse& response) {
  const bool wants_tls = !options_.tls && response.body.find("HTTPS server") != std::string::npos;
  const bool is_old = response.status == kNotFound;
  const std::string why = endpoints_.text() + " is not an etcd v3: status " + std::to_string(response.status) +
                          (is_old ? " for " + pending_.front().request.path : "");
  const bool is_proxy = response.status >= kBadGateway && response.status <= kGatewayTimeout;
  is_proxy ? fail(Failure::kPassing, why) : fail(Failure::kMistake, why, wants_tls ? kTlsHint : kVersionHint);
}

void EtcdClient::fail_tls() {
  const std::string refusal = tls_->refusal();
  const std::string hint = tls_->hint();
  const bool is_ours = tls_->is_about_us();
  if (socket_) (void)out_.send_to(socket_.get());  // the other end gets to know why, if it still listens
  const std::string why = is_ours ? refusal : endpoints_.text() + ": " + refusal;
  // Certificates that were in order before are being replaced.
  if (tls_works_) return fail(Failure::kPassing, why, hint);
  is_ours ? refuse(why, hint) : fail(Failure::kMistake, why, hint);
}

std::string EtcdClient::no_etcd_text() const {
  return "no etcd answers at " + endpoints_.text() + ": " + std::strerror(ECONNREFUSED) + " (tried for " +
         format_duration(options_.start) + ")";
}

/// Another endpoint is asked, while there is time and it is of use.
void EtcdClient::fail(Failure failure, const std::string& why, const std::string& hint) {
  if (!endpoints_.failed(failure, steady_now())) {
    return failure == Failure::kRefused ? refuse(no_etcd_text(), kNoEtcdHint) : refuse(why, hint);
  }
  disconnect();
  login_.forget_fresh();
  last_error_ = why;
  const Duration pause = endpoints_.next() ? kPauseOfRounds : Duration::zero();
  if (steady_now() + pause >= pending_.front().give_up) return finish({.trouble = why, .hint = hint});
  busy_ = true;
  next_ = loop_.after(pause, [this] {
    busy_ = false;
    go_on();
  });
}

void EtcdClient::refuse(const std::string& why, const std::string& hint) {
  disconnect();
  last_error_ = why;
  finish({.trouble = why, .hint = hint});
}

/// By the loop: `done` may ask again, or destroy this. Until then the connection is not read.
void EtcdClient::finish(Result result) {
  busy_ = true;
  readable_.cancel();
  next_ = loop_.after(Duration::zero(), [this, result = std::move(result)] {
    const Done done = std::move(pending_.front().done);
    pending_.pop_front();
    busy_ = false;
    if (socket_) readable_ = loop_.on_readable(socket_.get(), [this] { read(); });
    if (!pending_.empty()) next_ = loop_.after(Duration::zero(), [this] { go_on(); });
    done(result);
  });
}

void EtcdClient::disconnect() {
  busy_ = false;
  connector_.cancel();
  attempt_limit_.cancel();
  readable_.cancel();
  writable_.cancel();
  socket_.reset();
  tls_.reset();
  out_ = SendBuffer();
  has_answered_ = false;
}

}  // namespace lrun::launcher
