#include "rendezvous/launcher_link.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "base/ask_in_child.h"
#include "store/connect.h"

namespace lrun {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
constexpr Duration kLongestPause(1000);
constexpr Duration kAttemptLimit(5000);
constexpr Duration kNameServiceLimit(3000);
constexpr int kBeatsPerHeartbeat = 4;

SteadyTime now() { return std::chrono::steady_clock::now(); }

std::int64_t nanoseconds(auto time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::string first_address(const std::string& host) {
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_family = family;
    addrinfo* list = nullptr;
    if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) continue;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
    char text[NI_MAXHOST];
    if (::getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) return text;
  }
  return {};
}

}  // namespace

std::string resolve_address(const std::string& host) {
  in6_addr bytes{};
  if (::inet_pton(AF_INET, host.c_str(), &bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), &bytes) == 1) return host;
  if (host == "localhost") return "127.0.0.1";
  const ChildAnswer answer = ask_in_child([&] { return first_address(host); }, kNameServiceLimit);
  return answer.end == ChildAnswer::End::kAnswered ? answer.text : std::string();
}

LauncherLink::LauncherLink(EventLoop& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      give_up_(now() + options_.connect),
      decoder_(kMostBytesFromHolder, false),
      heard_(now()) {
  again_ = loop_.after(Duration::zero(), [this] { try_to_connect(); });
}

void LauncherLink::try_to_connect() {
  readable_.cancel();
  writable_.cancel();
  socket_.reset();
  const std::string address = resolve_address(options_.host);
  if (address.empty()) return fail("no address of '" + options_.host + "' can be found");
  try {
    socket_ = begin_to_connect(address, options_.port);
  } catch (const std::system_error& error) {
    return fail(error.what());
  }
  writable_ = loop_.on_writable(socket_.get(), [this] { connected(); });
  attempt_limit_ = loop_.after(kAttemptLimit, [this] { fail("no answer from '" + options_.host + "'"); });
}

void LauncherLink::connected() {
  attempt_limit_.cancel();
  writable_.cancel();
  if (const int error = connection_error(socket_.get()); error != 0) {
    return fail("cannot connect to " + options_.host + " port " + std::to_string(options_.port) + ": " +
                std::generic_category().message(error));
  }
  join();
}

void LauncherLink::join() {
  const ConnectionEnds ends = ends_of_connection(socket_.get());
  JoinRecord record = options_.record;
  if (record.address.empty()) record.address = ends.own;
  record.meeting_address = options_.record.meeting_address = ends.peer;
  joined_ = true;
  heard_ = beaten_ = now();
  decoder_ = LauncherMessageDecoder(kMostBytesFromHolder, false);
  out_ = SendBuffer();
  out_.tail() = kLauncherGreeting;
  append_message(out_.tail(), {.kind = Kind::kJoin, .join = std::move(record)});
  readable_ = loop_.on_readable(socket_.get(), [this] { read(); });
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
  if (count <= 0) return fail("its launcher ended: the connection was closed");
  heard_ = now();
  decoder_.take({bytes, static_cast<std::size_t>(count)});
  while (const std::optional<LauncherMessage> message = decoder_.next()) {
    if (message->kind == Kind::kEcho) {
      take_echo(*message);
    } else {
      events_.received(*message);
    }
    if (done_) return;
  }
  if (!decoder_.refusal().empty()) fail("it sent " + decoder_.refusal());
}

void LauncherLink::take_echo(const LauncherMessage& echo) {
  const std::int64_t received = nanoseconds(now());
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
  const SteadyTime before = std::exchange(beaten_, now());
  if (beaten_ - before > silence / 2) heard_ = now();
  if (now() - heard_ >= silence) {
    read();  // what came since is still unread
    if (done_ || !socket_) return;
    if (now() - heard_ >= silence) return fail("silence for " + format_duration(silence));
  }
  send({.kind = Kind::kBeat, .sent_ns = nanoseconds(now())});
  beat_ = loop_.after(silence / kBeatsPerHeartbeat, [this] { beat(); });
}

/// Tries again while the job has not begun and there is time.
void LauncherLink::fail(const std::string& why) {
  if (done_) return;
  const bool had_joined = joined_;
  attempt_limit_.cancel();
  beat_.cancel();
  readable_.cancel();
  writable_.cancel();
  socket_.reset();
  joined_ = false;
  if (settled_ || now() + pause_ >= give_up_) {
    done_ = true;
    again_ = loop_.after(Duration::zero(), [this, why, had_joined] { events_.broken(why, had_joined); });
    return;
  }
  again_ = loop_.after(pause_, [this] { try_to_connect(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void LauncherLink::close() {
  done_ = true;
  again_.cancel();
  attempt_limit_.cancel();
  beat_.cancel();
  readable_.cancel();
  writable_.cancel();
  socket_.reset();
}

}  // namespace lrun
