#include "store/etcd_client.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/shortened.h"
#include "wire/connect.h"
#include "store/host_address.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kEtcdReadBytes = std::size_t{16} << 10U;
constexpr Duration kPauseOfRounds(200);  // between two rounds through the endpoints
constexpr std::size_t kMostShown = 200;
constexpr int kNotFound = 404;
constexpr int kBadGateway = 502;
constexpr int kGatewayTimeout = 504;
constexpr const char* kVersionHint =
    "--rdzv-backend etcd needs the JSON gateway of an etcd v3, which 3.4 and newer have";
constexpr const char* kTokenHint = "a proxy between lrun and etcd has to pass the header 'Authorization' on";
constexpr const char* kUserHint = "set LRUN_ETCD_USER=NAME:PASSWORD on every node";
constexpr const char* kTlsHint = "an etcd that wants TLS is asked with '--rdzv-conf protocol=https'";
constexpr const char* kNoTlsHint = "an etcd that speaks no TLS is asked without '--rdzv-conf protocol=https'";
/// How often each endpoint may end a connection without a word, before one has answered. One that is being started
/// refuses it instead; a proxy before one that is started again does not.
constexpr std::size_t kMostWordless = 10;

/// Another member of the cluster may do better, or this one a moment later.
bool is_passing(const EtcdAnswer& answer) {
  constexpr int kPassing[] = {kEtcdCancelled, kEtcdUnknown,  kEtcdDeadlineExceeded, kEtcdResourceExhausted,
                              kEtcdAborted,   kEtcdInternal, kEtcdUnavailable};
  return std::find(std::begin(kPassing), std::end(kPassing), answer.code) != std::end(kPassing);
}

/// A user or a role has changed since the token was given.
bool is_outdated(const EtcdAnswer& answer) {
  return answer.error.find("revision of auth store is old") != std::string::npos;
}

/// Of a connection that was not logged in, or no longer is.
bool wants_token(const EtcdAnswer& answer) {
  return answer.code == kEtcdUnauthenticated || is_outdated(answer) ||
         answer.error.find("user name is empty") != std::string::npos;
}

/// Empty: what answers is no etcd.
std::optional<EtcdAnswer> answer_in(const HttpResponse& response) {
  constexpr int kHundred = 100;
  std::optional<EtcdAnswer> answer = etcd_answer_from_json(response.body);
  return answer && (response.status / kHundred == 2 || !answer->error.empty()) ? answer : std::nullopt;
}

}  // namespace

void EtcdClient::ask(EtcdRequest request, Duration limit, Told told) {
  pending_.push_back({std::move(request), steady_now() + limit, std::move(told)});
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
  if (!options_.tls) return find_address();
  tls_.emplace(*options_.tls, place().host);
  tls_->refusal().empty() ? find_address() : refuse_tls();
}

void EtcdClient::find_address() {
  if (const std::string known = known_address(place().host); !known.empty()) return connect_to(known);
  look_up_address(
      loop_, resolving_, [host = place().host] { return ask_for_address(host); },
      [this](const std::string& address) {
        address.empty() ? fail("no address of '" + place().host + "' can be found") : connect_to(address);
      });
}

void EtcdClient::connect_to(const std::string& address) {
  try {
    socket_ = begin_to_connect(address, place().port);
  } catch (const std::system_error& error) {
    return fail(error.what());
  }
  writable_ = loop_.on_writable(socket_.get(), [this] { connected(); });
  attempt_limit_ = loop_.after(time_left(), [this] { fail("no answer from " + place_in_words()); });
}

void EtcdClient::connected() {
  writable_.cancel();
  attempt_limit_.cancel();
  if (const int error = connection_error(socket_.get()); error != 0) {
    const std::string why = "cannot connect to " + place_in_words() + ": " + std::generic_category().message(error);
    return error == ECONNREFUSED ? take_refusal(why) : fail(why);
  }
  readable_ = loop_.on_readable(socket_.get(), [this] { read(); });
  tls_ ? begin_tls() : send();
}

void EtcdClient::begin_tls() {
  out_.tail() = tls_->take_output();
  attempt_limit_ = loop_.after(time_left(), [this] { fail("no answer to TLS's greeting from " + place_in_words()); });
  flush();
}

void EtcdClient::send() {
  asks_for_token_ = logs_in();
  const EtcdRequest request =
      asks_for_token_ ? etcd_authenticate(options_.user, options_.password) : pending_.front().request;
  reader_ = HttpResponseReader();
  const bool bare = place().host.find(':') == std::string::npos;
  std::string text = "POST " + request.path + " HTTP/1.1\r\nHost: " + (bare ? place().host : "[" + place().host + "]") +
                     ":" + std::to_string(place().port) +
                     "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(request.body.size()) +
                     "\r\n";
  if (token_ && !token_->empty()) text += "Authorization: " + *token_ + "\r\n";
  text += "\r\n" + request.body;
  if (tls_) {
    tls_->give(text);
    text = tls_->take_output();
  }
  out_.tail() += text;
  attempt_limit_ = loop_.after(time_left(), [this] {
    fail("no answer from " + place_in_words() + ", which is connected: has etcd lost its quorum?");
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
  if (!busy_) return disconnect();  // closed by etcd while nobody asks, or words that nobody asked for
  if (count <= 0) return end_of_connection();
  has_spoken_ = true;
  const std::string_view words(bytes, static_cast<std::size_t>(count));
  tls_ ? decrypt(words) : take_bytes(words, false);
}

/// The request follows the greeting.
void EtcdClient::decrypt(std::string_view bytes) {
  const bool was_open = tls_->is_open();
  tls_->take(bytes);
  out_.tail() += tls_->take_output();
  if (!tls_->refusal().empty()) return refuse_tls();
  if (!was_open && tls_->is_open()) return send();
  flush();
  if (was_open) take_bytes(tls_->take_words(), tls_->is_closed());
}

void EtcdClient::take_bytes(std::string_view bytes, bool is_end) {
  auto response = reader_.take(bytes);
  if (!response && is_end) response = reader_.end();
  if (response) return take(*response);
  if (!reader_.refusal().empty()) {
    return mistake("what answers at " + place_in_words() + " is no etcd: " + reader_.refusal(), kVersionHint);
  }
  if (is_end) fail(place_in_words() + " closed the connection");
}

/// Which is the end of an answer only where nobody could have cut it off.
void EtcdClient::end_of_connection() {
  if (has_spoken_) {
    if (const auto response = tls_ ? std::nullopt : reader_.end()) return take(*response);
    return fail(place_in_words() + " closed the connection");
  }
  const std::string why = place_in_words() + " closed the connection without a word";
  const std::string hint = tls_ ? kNoTlsHint : kTlsHint;
  const bool waits = has_answered_ || ++wordless_ < kMostWordless * options_.endpoints.size();
  waits ? fail(why, hint) : refuse(why, hint);
}

void EtcdClient::take(const HttpResponse& response) {
  attempt_limit_.cancel();
  own_address_ = ends_of_connection(socket_.get()).own;
  if (!response.keeps_connection) disconnect();
  busy_ = true;
  const std::optional<EtcdAnswer> answer = answer_in(response);
  if (!answer) return take_what_is_no_etcd(response);
  if (is_passing(*answer)) return fail(place_in_words() + " says '" + shortened(answer->error, kMostShown) + "'");
  failed_ = mistaken_ = wordless_ = 0;
  has_answered_ = true;
  tls_works_ = options_.tls.has_value();
  trouble_.clear();
  if (asks_for_token_) return take_token(*answer);
  if (wants_token(*answer)) {
    if (options_.user.empty()) return refuse("etcd lets nobody in without a name", kUserHint);
    token_.reset();
    if (std::exchange(token_is_fresh_, false)) {
      if (is_outdated(*answer)) return fail("etcd says '" + shortened(answer->error, kMostShown) + "'");
      return refuse("etcd lets '" + options_.user + "' in and does not know the name in the next request", kTokenHint);
    }
    return send_again();
  }
  token_is_fresh_ = false;
  if (answer->code == kEtcdPermissionDenied) {
    return refuse("etcd says '" + shortened(answer->error, kMostShown) + "'",
                  "give the user of LRUN_ETCD_USER the right to read and write below --rdzv-conf etcd_prefix");
  }
  finish({.answer = *answer});
}

void EtcdClient::take_what_is_no_etcd(const HttpResponse& response) {
  const bool wants_tls = !options_.tls && response.body.find("HTTPS server") != std::string::npos;
  const bool old = response.status == kNotFound;
  const std::string why = "what answers at " + place_in_words() + " is no etcd v3: status " +
                          std::to_string(response.status) + (old ? " for " + pending_.front().request.path : "");
  const bool is_proxy = response.status >= kBadGateway && response.status <= kGatewayTimeout;
  is_proxy ? fail(why) : mistake(why, wants_tls ? kTlsHint : kVersionHint);
}

/// An etcd that asks nobody for a name is as good.
void EtcdClient::take_token(const EtcdAnswer& answer) {
  if (!answer.error.empty() && answer.code != kEtcdFailedPrecondition) {
    return refuse("etcd says '" + shortened(answer.error, kMostShown) + "'", kUserHint);
  }
  token_ = answer.token;
  token_is_fresh_ = true;
  send_again();
}

/// The same request, now that who asks has a name.
void EtcdClient::send_again() { socket_ ? send() : connect(); }

/// One wrong endpoint of several is no reason to give up.
void EtcdClient::mistake(const std::string& why, const std::string& hint) {
  const std::size_t mistaken = mistaken_ + 1;
  if (mistaken == options_.endpoints.size()) return refuse(why, hint);
  fail(why, hint);
  mistaken_ = mistaken;
}

/// The other end gets to know why, if it still listens. Certificates that were in order before are being
/// replaced.
void EtcdClient::refuse_tls() {
  const std::string why = tls_->refusal();
  const std::string hint = tls_->hint();
  const bool is_ours = tls_->is_about_us();
  if (socket_) (void)out_.send_to(socket_.get());
  const std::string told = is_ours ? why : place_in_words() + ": " + why;
  if (tls_works_) return fail(told, hint);
  is_ours ? refuse(told, hint) : mistake(told, hint);
}

/// Where nobody listens nobody is slow to answer.
void EtcdClient::take_refusal(const std::string& why) {
  const SteadyTime since = refused_since_.value_or(steady_now());
  const bool waits = has_answered_ || options_.start == Duration::zero() || steady_now() < since + options_.start;
  waits ? fail(why) : refuse(why, "");
  refused_since_ = since;
}

/// Another endpoint is asked, while there is time.
void EtcdClient::fail(const std::string& why, const std::string& hint) {
  disconnect();
  mistaken_ = 0;
  refused_since_.reset();
  token_is_fresh_ = false;  // an etcd that begins anew may have forgotten it
  trouble_ = why;
  endpoint_ = (endpoint_ + 1) % options_.endpoints.size();
  const bool all_failed = ++failed_ % options_.endpoints.size() == 0;
  const Duration pause = all_failed ? kPauseOfRounds : Duration::zero();
  if (steady_now() + pause >= pending_.front().give_up) return finish({.trouble = why, .hint = hint});
  busy_ = true;
  next_ = loop_.after(pause, [this] {
    busy_ = false;
    go_on();
  });
}

void EtcdClient::refuse(const std::string& why, const std::string& hint) {
  disconnect();
  mistaken_ = wordless_ = 0;
  trouble_ = why;
  finish({.trouble = why, .hint = hint});
}

/// Told by the loop: whoever is told may ask again, or destroy this. What becomes of the connection meanwhile is of no
/// concern to who asked.
void EtcdClient::finish(Result result) {
  busy_ = true;
  readable_.cancel();
  next_ = loop_.after(Duration::zero(), [this, result = std::move(result)] {
    const Told told = std::move(pending_.front().told);
    pending_.pop_front();
    busy_ = false;
    if (socket_) readable_ = loop_.on_readable(socket_.get(), [this] { read(); });
    if (!pending_.empty()) next_ = loop_.after(Duration::zero(), [this] { go_on(); });
    told(result);
  });
}

void EtcdClient::disconnect() {
  busy_ = false;
  resolving_.reset();
  attempt_limit_.cancel();
  readable_.cancel();
  writable_.cancel();
  socket_.reset();
  tls_.reset();
  out_ = SendBuffer();
  has_spoken_ = false;
}

}  // namespace lrun::launcher
