// In: the address of a leader, and messages for it. Out: its messages, or why the link is of no use. Called by the
// states of a Job, and by EndpointWatch.
#include "rendezvous/launcher_link.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
constexpr Duration kLongestRetryPause(1000);
constexpr int kMessagesPerHeartbeat = 4;

Handshake handshake_with(const std::string& secret) { return {Handshake::Side::kLauncher, secret, random_nonce()}; }

std::string hint_of_unknown_name(const std::string& option) {
  return fmt::format(
      "check the name in '{}'; for one that appears later, '--rdzv-conf join_timeout=SECONDS' says how long to wait",
      option);
}

bool is_one_host(const ConnectionEnds& ends) {
  return ends.own == ends.peer || (is_loopback_address(ends.own) && is_loopback_address(ends.peer));
}

}  // namespace

LauncherLink::LauncherLink(EventLoop& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      give_up_(steady_now() + options_.connect),
      connector_(loop),
      handshake_(handshake_with(options_.secret)),
      silence_(options_.heartbeat, steady_now()) {
  next_ = loop_.after(Duration::zero(), [this] { connect(); });
}

std::int64_t LauncherLink::heard_ns() const { return nanoseconds(silence_.last_heard()) + offset_.steady_ns; }

void LauncherLink::connect() {
  disconnect();
  connector_.connect(
      {.host = options_.host, .port = options_.port, .limit = options_.attempt, .find_address = options_.find_address},
      [this](SocketConnector::Result result) { connected(std::move(result)); });
}

void LauncherLink::connected(SocketConnector::Result result) {
  const bool was_refused = result.error == ECONNREFUSED;
  refused_since_ = was_refused ? std::optional(refused_since_.value_or(steady_now())) : std::nullopt;
  if (const auto since = wrong_since(); since && steady_now() - *since >= options_.name) {
    return give_up(
        fmt::format("{} ({} for {})", result.trouble, was_refused ? "tried" : "asked", format_duration(options_.name)),
        options_.is_up ? "" : hint_of_unknown_name(options_.host_option));
  }
  if (!result.address.empty()) found_address_ = result.address;
  if (!result.socket) {
    keeps_closed_ = keeps_closed_ || (options_.vote && was_refused);
    return fail(result.trouble);
  }
  socket_ = std::move(result.socket);
  attempt_limit_ = loop_.after(options_.attempt, [this] {
    fail(place() + " takes connections, and does not answer as lrun does: is the port another program's?");
  });
  handshake_ = handshake_with(options_.secret);
  decoder_ = LauncherMessageDecoder(kMostBytesFromLeader);
  out_ = SendBuffer();
  out_.tail() = handshake_.take_output();
  readable_ = loop_.on_readable(socket_.get(), [this] { read(); });
  flush();
}

void LauncherLink::join() {
  const ConnectionEnds ends = ends_of_connection(socket_.get());
  on_one_host_ = is_one_host(ends);
  JoinRecord record = options_.record;
  if (record.address.empty()) record.address = ends.own;
  record.leader_address = options_.record.leader_address = ends.peer;
  joined_ = true;
  keeps_closed_ = keeps_closed_ || options_.vote;
  silence_.restart(steady_now());
  append_message(out_.tail(), {.kind = options_.invites_to ? Kind::kInvite : Kind::kJoin,
                               .round = options_.invites_to.value_or(options_.resumes.value_or(0)),
                               .resumes = options_.resumes.has_value(),
                               .node_rank = options_.vote,
                               .was_spare = options_.was_spare,
                               .join = std::move(record)});
  if (events_.connection) events_.connection(socket_.get());
  if (events_.joined) events_.joined();
  send_heartbeat();
}

void LauncherLink::send(const LauncherMessage& message) {
  if (done_ || !joined_ || !socket_) return;
  append_message(out_.tail(), message);
  flush();
}

/// A connection that breaks is seen where it is read.
void LauncherLink::flush() {
  if (!out_.send_to(socket_.get())) return writable_.cancel();
  if (out_.empty()) {
    writable_.cancel();
  } else if (!writable_.armed()) {
    writable_ = loop_.on_writable(socket_.get(), [this] { flush(); });
  }
}

void LauncherLink::read() {
  char bytes[kReadBytes];
  const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (count <= 0) {
    was_closed_ = count == 0 || errno == ECONNRESET;
    return fail(joined_ ? "its launcher ended: the connection was closed"
                        : place() + " closed the connection before the handshake: is it lrun?");
  }
  silence_.heard(steady_now());
  const std::string_view words(bytes, static_cast<std::size_t>(count));
  if (handshake_.done()) {
    decoder_.feed(words);
  } else if (!shake_hands(words)) {
    return;
  }
  take_messages();
}

/// \return whether the leader was reached.
bool LauncherLink::shake_hands(std::string_view bytes) {
  handshake_.feed(bytes);
  out_.tail() += handshake_.take_output();
  if (!handshake_.refusal().empty()) {
    give_up(place() + " is not a launcher of this job: " + handshake_.refusal(),
            handshake_.met_foreign() ? hint_of_other_port(options_.port_option) : handshake_.hint());
    return false;
  }
  flush();
  if (!handshake_.done()) return false;
  attempt_limit_.cancel();
  decoder_.feed(handshake_.take_rest());
  join();
  return !done_;
}

void LauncherLink::take_messages() {
  while (const std::optional<LauncherMessage> message = decoder_.next()) {
    if (message->kind == Kind::kHeartbeatAck) {
      take_acknowledgement(*message);
    } else {
      events_.received(*message);
    }
    if (done_) return;
  }
  if (!decoder_.refusal().empty()) fail("it sent " + decoder_.refusal());
}

void LauncherLink::take_acknowledgement(const LauncherMessage& message) {
  const ClockReading now{nanoseconds(steady_now()), nanoseconds(std::chrono::system_clock::now())};
  offset_.update(message.sent_ns, {message.steady_ns, message.wall_ns}, now, on_one_host_);
}

void LauncherLink::send_heartbeat() {
  if (done_) return;
  if (silence_.is_silent(steady_now())) {
    read();  // messages that came since may still be unread
    if (done_ || !socket_) return;
    if (silence_.is_still_silent(steady_now())) return fail_by_silence();
  }
  send({.kind = Kind::kHeartbeat, .sent_ns = nanoseconds(steady_now())});
  // Silence is noticed at once when it is long enough: the leader begins the next round without us then.
  const Duration pause = std::min(silence_.rest(steady_now()), options_.heartbeat / kMessagesPerHeartbeat);
  next_ = loop_.after(pause, [this] { send_heartbeat(); });
}

/// The other end may still hear us, and must not take the end of this connection for ours.
void LauncherLink::fail_by_silence() {
  send({.kind = Kind::kLeaderless});
  said_leaderless_ = true;
  fail("silence for " + format_duration(options_.heartbeat));
}

/// Tries again while the job has not begun and there is time.
void LauncherLink::fail(const std::string& why) {
  if (done_) return;
  if (keeps_closed_ || steady_now() + pause_ >= give_up_) return give_up(why);
  disconnect();
  last_error_ = why;
  next_ = loop_.after(pause_, [this] { connect(); });
  pause_ = std::min(pause_ * 2, kLongestRetryPause);
}

void LauncherLink::give_up(const std::string& why, const std::string& hint) {
  close();
  next_ = loop_.after(Duration::zero(), [this, why, hint] { events_.broken(why, hint); });
}

void LauncherLink::close() {
  done_ = true;
  disconnect();
}

void LauncherLink::disconnect() {
  const bool is_shared = std::exchange(joined_, false) && events_.connection;
  connector_.cancel();
  attempt_limit_.cancel();
  next_.cancel();
  readable_.cancel();
  writable_.cancel();
  // The last message must come before the end of the connection. Where it cannot be sent yet, the connection is left
  // open: it ends with this process.
  if (std::exchange(said_leaderless_, false) && !out_.empty()) {
    (void)socket_.release();
    return;
  }
  if (is_shared) {  // others have copies: it ends here for all of them
    ::shutdown(socket_.get(), SHUT_RDWR);
    events_.connection(-1);
  }
  socket_.reset();
}

}  // namespace lrun::launcher
