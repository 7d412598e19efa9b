#include "rendezvous/launcher_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "store/host_address.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
constexpr Duration kLongestRetryPause(1000);
constexpr int kBeatsPerHeartbeat = 4;

Handshake handshake_with(const std::string& secret) { return {Handshake::Side::kLauncher, secret, random_nonce()}; }

}  // namespace

LauncherLink::LauncherLink(EventLoop& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      give_up_(steady_now() + options_.connect),
      handshake_(handshake_with(options_.secret)),
      decoder_(kMostBytesFromLeader),
      heard_(steady_now()) {
  again_ = loop_.after(Duration::zero(), [this] { try_to_connect(); });
}

std::string LauncherLink::place() const { return options_.host + " port " + std::to_string(options_.port); }

std::int64_t LauncherLink::heard_ns() const { return nanoseconds(heard_) + offset_.steady_ns; }

void LauncherLink::try_to_connect() {
  disconnect();
  if (const std::string known = known_address(options_.host); !known.empty()) return connect_to(known);
  resolve();
}

/// It may take seconds: whatever else this launcher does goes on.
void LauncherLink::resolve() {
  look_up_address(
      loop_, resolving_, [this] { return options_.find_address(options_.host); },
      [this](const std::string& address) {
        address.empty() ? fail("no address of '" + options_.host + "' can be found") : connect_to(address);
      });
}

void LauncherLink::connect_to(const std::string& address) {
  found_address_ = address;
  was_refused_ = false;
  try {
    socket_ = begin_to_connect(address, options_.port);
  } catch (const std::system_error& error) {
    return fail(error.what());
  }
  writable_ = loop_.on_writable(socket_.get(), [this] { connected(); });
  attempt_limit_ = loop_.after(options_.attempt, [this] { fail("no answer from " + place()); });
}

void LauncherLink::connected() {
  attempt_limit_.cancel();
  writable_.cancel();
  if (const int error = connection_error(socket_.get()); error != 0) {
    was_refused_ = error == ECONNREFUSED;
    settled_ = settled_ || (options_.vote && was_refused_);
    return fail("cannot connect to " + place() + ": " + std::generic_category().message(error));
  }
  attempt_limit_ =
      loop_.after(options_.attempt, [this] { fail("what listens at " + place() + " says nothing: is it lrun?"); });
  handshake_ = handshake_with(options_.secret);
  decoder_ = LauncherMessageDecoder(kMostBytesFromLeader);
  out_ = SendBuffer();
  out_.tail() = handshake_.take_output();
  readable_ = loop_.on_readable(socket_.get(), [this] { read(); });
  flush();
}

void LauncherLink::join() {
  const ConnectionEnds ends = ends_of_connection(socket_.get());
  JoinRecord record = options_.record;
  if (record.address.empty()) record.address = ends.own;
  record.leader_address = options_.record.leader_address = ends.peer;
  joined_ = true;
  settled_ = settled_ || options_.vote;
  heard_ = beaten_ = steady_now();
  append_message(out_.tail(), {.kind = options_.invites_to ? Kind::kInvite : Kind::kJoin,
                               .round = options_.invites_to.value_or(options_.resumes.value_or(0)),
                               .resumes = options_.resumes.has_value(),
                               .node_rank = options_.vote,
                               .was_spare = options_.was_spare,
                               .join = std::move(record)});
  if (events_.connection) events_.connection(socket_.get());
  if (events_.joined) events_.joined();
  beat();
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
                        : "what listens at " + place() + " closed the connection without a word: is it lrun?");
  }
  heard_ = steady_now();
  take({bytes, static_cast<std::size_t>(count)});
}

void LauncherLink::take(std::string_view bytes) {
  if (handshake_.done()) {
    decoder_.take(bytes);
  } else if (!shake_hands(bytes)) {
    return;
  }
  take_messages();
}

/// \return whether the meeting was reached.
bool LauncherLink::shake_hands(std::string_view bytes) {
  handshake_.take(bytes);
  out_.tail() += handshake_.take_output();
  if (!handshake_.refusal().empty()) {
    const bool is_stranger = handshake_.met_foreign();
    give_up("what answers at " + place() + " is not this job's launcher: " + handshake_.refusal(),
            is_stranger ? hint_of_other_port(options_.port_option) : handshake_.hint());
    return false;
  }
  flush();
  if (!handshake_.done()) return false;
  attempt_limit_.cancel();
  decoder_.take(handshake_.take_rest());
  join();
  return !done_;
}

void LauncherLink::take_messages() {
  while (const std::optional<LauncherMessage> message = decoder_.next()) {
    if (message->kind == Kind::kHeartbeatAck) {
      take_echo(*message);
    } else {
      events_.received(*message);
    }
    if (done_) return;
  }
  if (!decoder_.refusal().empty()) fail("it sent " + decoder_.refusal());
}

void LauncherLink::take_echo(const LauncherMessage& echo) {
  const std::int64_t received = nanoseconds(steady_now());
  const std::int64_t round_trip = received - echo.sent_ns;
  if (echo.sent_ns <= 0 || round_trip < 0 || (offset_.round_trip_ns >= 0 && round_trip >= offset_.round_trip_ns))
    return;
  offset_.round_trip_ns = round_trip;
  const ConnectionEnds ends = ends_of_connection(socket_.get());
  if (ends.own == ends.peer || (is_loopback_address(ends.own) && is_loopback_address(ends.peer))) return;
  offset_.steady_ns = echo.steady_ns - (received - round_trip / 2);
  offset_.wall_ns = echo.wall_ns - (nanoseconds(std::chrono::system_clock::now()) - round_trip / 2);
}

void LauncherLink::beat() {
  if (done_) return;
  const Duration silence = options_.heartbeat;
  // The machine slept, or lrun was stopped: nobody answers beats that were not sent.
  const SteadyTime before = std::exchange(beaten_, steady_now());
  if (beaten_ - before > silence / 2) heard_ = steady_now();
  if (steady_now() - heard_ >= silence) {
    read();  // what came since is still unread
    if (done_ || !socket_) return;
    if (steady_now() - heard_ >= silence) return fail_by_silence();
  }
  send({.kind = Kind::kHeartbeat, .sent_ns = nanoseconds(steady_now())});
  // Silence is noticed when it is long enough: who holds the meeting begins the next round without us then.
  const auto until_silent = std::chrono::ceil<Duration>(heard_ + silence - steady_now());
  beat_ = loop_.after(std::clamp(until_silent, Duration(1), silence / kBeatsPerHeartbeat), [this] { beat(); });
}

/// The other end may hear us still, and must not take the end of this connection for ours.
void LauncherLink::fail_by_silence() {
  send({.kind = Kind::kLeaderless});
  said_adrift_ = true;
  fail("silence for " + format_duration(options_.heartbeat));
}

/// Tries again while the job has not begun and there is time.
void LauncherLink::fail(const std::string& why) {
  if (done_) return;
  if (settled_ || steady_now() + pause_ >= give_up_) return give_up(why);
  disconnect();
  trouble_ = why;
  again_ = loop_.after(pause_, [this] { try_to_connect(); });
  pause_ = std::min(pause_ * 2, kLongestRetryPause);
}

void LauncherLink::give_up(const std::string& why, const std::string& hint) {
  close();
  again_ = loop_.after(Duration::zero(), [this, why, hint] { events_.broken(why, hint); });
}

void LauncherLink::close() {
  done_ = true;
  again_.cancel();
  disconnect();
}

void LauncherLink::disconnect() {
  const bool is_shared = std::exchange(joined_, false) && events_.connection;
  resolving_.reset();
  attempt_limit_.cancel();
  beat_.cancel();
  readable_.cancel();
  writable_.cancel();
  // What was said last must come before the end of the connection: where it cannot even be sent, there is none before
  // that of this process.
  if (std::exchange(said_adrift_, false) && !out_.empty()) {
    (void)socket_.release();
    return;
  }
  if (is_shared) {  // whatever others have of it, it ends here
    ::shutdown(socket_.get(), SHUT_RDWR);
    events_.connection(-1);
  }
  socket_.reset();
}

}  // namespace lrun::launcher
