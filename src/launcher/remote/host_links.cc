// In: the hosts and the ways to them, and frames for their launchers. Out: frames of each host, and the ends of their
// connections, however many relays are between. Called by the head alone.
#include "remote/host_links.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "base/whole_number.h"
#include "remote/frames.h"
#include "remote/host_ways.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

constexpr ExitStatus kEndOfSsh{ExitStatus::Kind::kExited, 255};  // it did not reach the host

std::optional<NodeFrame> whole_frame(std::string_view bytes) {
  NodeFrameReader reader;
  reader.feed(bytes);
  return reader.next();
}

}  // namespace

HostLinks::HostLinks(EventLoop& loop, std::vector<Host> hosts, Options options, Events events)
    : loop_(loop),
      hosts_(std::move(hosts)),
      options_(std::move(options)),
      events_(std::move(events)),
      behind_(hosts_.size()),
      links_(2 * hosts_.size()) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (options_.ways[i] != kFromHead) behind_[static_cast<std::size_t>(options_.ways[i])].push_back(i);
  }
}

void HostLinks::connect() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (options_.ways[i] == kFromHead) connect_from_here(i);
  }
}

void HostLinks::connect_from_here(std::size_t host) {
  std::string why;
  if (!behind_[host].empty()) {
    if (open(relay_of(host), hosts_[host].relay_command, why)) return connect_behind(host);
    for (const std::size_t other : behind_[host]) connect_from_here(other);
  }
  connect_launcher_from_here(host);
}

void HostLinks::connect_launcher_from_here(std::size_t host) {
  std::string why;
  const int number = static_cast<int>(host);
  if (!open(number, hosts_[host].command, why)) return events_.failed(host, why);
  send_to(number, Kind::kOrder, events_.order(host));
}

bool HostLinks::open(int number, const std::vector<std::string>& command, std::string& why) {
  const bool here = hosts_[host_of(number)].here;
  try {
    auto own = std::make_unique<HostLink>(
        loop_, command, options_.defaults, here ? std::string_view() : std::string_view(options_.first_bytes),
        HostLink::Events{.frame = [this, number](const NodeFrame& frame) { received(number, frame); },
                         .progress = [this, number] { link(number).moved = steady_now(); },
                         .ended = [this, number](const ExitStatus& status,
                                                 const std::string& last_line) { ended(number, status, last_line); }});
    own->pause(paused_);
    Link& opened = link(number);
    opened.through = kHeadItself;
    opened.own = std::move(own);
    opened.open = true;
    opened.moved = steady_now();
    return true;
  } catch (const std::system_error& error) {
    why = error.what();
    return false;
  }
}

/// The relay is there, or will be: frames for it wait meanwhile.
void HostLinks::connect_behind(std::size_t host) {
  const int relay = relay_of(host);
  connect_through(relay, host, {});
  for (const std::size_t other : behind_[host]) {
    if (behind_[other].empty()) {
      connect_through(relay, other, hosts_[other].command);
    } else {
      start(relay, relay_of(other), hosts_[other].relay_command);
      connect_behind(other);
    }
  }
}

/// \param command  empty: of the relay's own host.
void HostLinks::connect_through(int relay, std::size_t host, const std::vector<std::string>& command) {
  const int number = static_cast<int>(host);
  start(relay, number, command);
  send_to(number, Kind::kOrder, events_.order(host));
}

void HostLinks::start(int relay, int number, const std::vector<std::string>& command) {
  link(number).through = relay;
  link(number).open = true;
  link(number).moved = steady_now();
  const bool copies = !command.empty() && !options_.first_bytes.empty();
  send_to(relay, Kind::kStartHost, encode(HostStart{number, command, copies}));
}

void HostLinks::send(std::size_t host, Kind kind, std::string_view payload) {
  send_to(static_cast<int>(host), kind, payload);
}

void HostLinks::send_to(int number, Kind kind, std::string_view payload) {
  const Link& to = link(number);
  if (!to.open) return;
  if (to.through == kHeadItself) return to.own->send(kind, payload);
  send_to(to.through, Kind::kToHost, frame_of_host(number, kind, payload));
}

/// The farthest host comes first, because a relay takes a frame that it passes on for a heartbeat of its own.
bool HostLinks::send_elsewhere(Kind kind) {
  bool is_any = false;
  for (int number = static_cast<int>(links_.size()) - 1; number >= 0; --number) {
    if (is_relay(number) || hosts_[host_of(number)].here) continue;
    is_any = is_any || link(number).open;
    send_to(number, kind, "");
  }
  for (int number = static_cast<int>(links_.size()) - 1; is_relay(number); --number) send_to(number, kind, "");
  return is_any;
}

void HostLinks::received(int number, const NodeFrame& frame) {
  link(number).heard = true;
  if (!is_relay(number)) return events_.frame(host_of(number), frame);
  if (frame.kind == Kind::kFromHost) {
    const std::optional<HostFrame> of_host = decode_host_frame(frame.payload);
    if (!of_host || !goes_through(of_host->number, number)) return;
    if (const std::optional<NodeFrame> inner = whole_frame(of_host->bytes)) received(of_host->number, *inner);
  } else if (frame.kind == Kind::kHostProgress) {
    const int moved = whole_number<int>(frame.payload).value_or(-1);
    if (goes_through(moved, number)) link(moved).moved = steady_now();
  } else if (frame.kind == Kind::kHostEnded) {
    const std::optional<HostEnd> end = decode_host_end(frame.payload);
    if (end && goes_through(end->number, number)) ended(end->number, end->status, end->last_line);
  }
}

bool HostLinks::goes_through(int number, int relay) const {
  if (number < 0 || static_cast<std::size_t>(number) >= links_.size()) return false;
  const Link& asked = links_[static_cast<std::size_t>(number)];
  return asked.open && asked.through == relay;
}

void HostLinks::ended(int number, const ExitStatus& status, const std::string& last_line) {
  std::vector<std::size_t> hosts;
  end(number, status, hosts);
  std::sort(hosts.begin(), hosts.end());
  if (!hosts.empty()) events_.ended(hosts, status, last_line);
}

/// \param ended  gets the hosts whose end is final; the others are connected to from here.
void HostLinks::end(int number, const ExitStatus& status, std::vector<std::size_t>& ended) {
  Link& lost = link(number);
  if (!std::exchange(lost.open, false)) return;
  if (is_relay(number)) {
    for (int behind = static_cast<int>(links_.size()) - 1; behind >= 0; --behind) {
      if (goes_through(behind, number)) end(behind, status, ended);
    }
  } else if (lost.heard || was_tried_from_here(number, status)) {
    ended.push_back(host_of(number));
  } else {
    connect_launcher_from_here(host_of(number));
  }
}

/// Whether a second connection from here would tell nothing new. An lrun of another version may know no relay: as a
/// launcher it can say which version it is, so that one is tried again.
bool HostLinks::was_tried_from_here(int number, const ExitStatus& status) const {
  const int through = links_[static_cast<std::size_t>(number)].through;
  if (through == kHeadItself) return true;
  const Link& relay = links_[static_cast<std::size_t>(through)];
  if (host_of(through) != host_of(number) || relay.through != kHeadItself) return false;
  return status == kEndOfSsh || (relay.own && relay.own->has_answered());
}

void HostLinks::connect_silent_from_here(SteadyTime since) {
  for (int number = static_cast<int>(links_.size()) - 1; number >= 0; --number) {
    const Link& waiting = link(number);
    if (!waiting.open || waiting.heard || waiting.through == kHeadItself) continue;
    if (link(waiting.through).through == kHeadItself && host_of(waiting.through) == host_of(number)) continue;
    if (last_progress_of(number) > since) continue;
    close_link(number);
    if (!is_relay(number)) connect_launcher_from_here(host_of(number));
  }
}

SteadyTime HostLinks::last_progress_of(int number) const {
  const Link& moved = links_[static_cast<std::size_t>(number)];
  return moved.through == kHeadItself ? moved.moved : std::max(moved.moved, last_progress_of(moved.through));
}

void HostLinks::pause(bool paused) {
  paused_ = paused;
  for (const Link& each : links_) {
    if (each.own) each.own->pause(paused);
  }
}

void HostLinks::close(std::size_t host) { close_link(static_cast<int>(host)); }

void HostLinks::close_link(int number) {
  Link& closed = link(number);
  if (!std::exchange(closed.open, false)) return;
  if (closed.through == kHeadItself) return closed.own->close();
  send_to(closed.through, Kind::kCloseHost, std::to_string(number));
}

std::size_t HostLinks::first_on_the_way(std::size_t host) const {
  std::size_t number = host;
  while (links_[number].through != kHeadItself) number = static_cast<std::size_t>(links_[number].through);
  return host_of(static_cast<int>(number));
}

}  // namespace lrun::launcher
