// In: frames of the head about connections to further hosts. Out: frames of those hosts, wrapped, and the ends of their
// connections. Called by relay_agent.
#include "remote/host_relay.h"

#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/whole_number.h"
#include "remote/own_program.h"
#include "remote/ssh.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

constexpr int kCannotConnect = 255;  // as ssh ends
constexpr Duration kToEnd(2000);     // a launcher that takes longer is killed
constexpr Duration kBetweenReports(1000);
// Every relay on the way wraps a frame into one of its own, which has the same limit.
constexpr std::size_t kBytesOfRelay = 13;
constexpr std::size_t kBytesOfAllRelays = 64;

}  // namespace

HostRelay::HostRelay(EventLoop& loop, const SpawnDefaults& defaults, Send send)
    : loop_(loop), defaults_(defaults), send_(std::move(send)) {}

void HostRelay::handle(const NodeFrame& frame) {
  if (frame.kind == Kind::kStartHost) {
    if (const std::optional<HostStart> host = decode_host_start(frame.payload)) start(*host);
  } else if (frame.kind == Kind::kToHost) {
    const std::optional<HostFrame> of_host = decode_host_frame(frame.payload);
    const auto link = of_host ? links_.find(of_host->number) : links_.end();
    if (link != links_.end()) link->second->send_bytes(of_host->bytes);
  } else if (frame.kind == Kind::kCloseHost) {
    if (const auto number = whole_number<int>(frame.payload)) close_link(*number);
  }
}

/// Other hosts do not wait for its end.
void HostRelay::close_link(int number) {
  const auto found = links_.find(number);
  if (found == links_.end()) return;
  found->second->close();
  closed_[number] = {std::move(found->second), loop_.after(kToEnd, [this, number] { closed_.erase(number); })};
  links_.erase(found);
}

void HostRelay::pass_on(int number, const NodeFrame& frame) {
  const std::size_t room = frame.kind == Kind::kFromHost ? kBytesOfRelay : kBytesOfAllRelays;
  if (frame.payload.size() <= kMostFrameBytes - room) {
    return send_(Kind::kFromHost, frame_of_host(number, frame.kind, frame.payload));
  }
  close_link(number);
  send_(Kind::kHostEnded,
        encode(HostEnd{number, {ExitStatus::Kind::kExited, kCannotConnect}, "it sent a frame that is too large"}));
}

void HostRelay::start(const HostStart& start) {
  try {
    connect(start);
  } catch (const std::system_error& error) {
    send_(Kind::kHostEnded, encode(HostEnd{start.number, {ExitStatus::Kind::kExited, kCannotConnect}, error.what()}));
  }
}

void HostRelay::connect(const HostStart& start) {
  if (start.copies && own_program_.empty()) own_program_ = own_program();
  std::vector<std::string> command = start.command;
  if (command.empty()) command = {own_program_path(), kNodeWord};
  const int number = start.number;
  auto link = std::make_unique<HostLink>(
      loop_, command, defaults_, start.copies ? std::string_view(own_program_) : std::string_view(),
      HostLink::Events{.frame = [this, number](const NodeFrame& frame) { pass_on(number, frame); },
                       .progress =
                           [this, number, last = SteadyTime()]() mutable {
                             if (steady_now() - last < kBetweenReports) return;
                             last = steady_now();
                             send_(Kind::kHostProgress, std::to_string(number));
                           },
                       .ended =
                           [this, number](const ExitStatus& status, const std::string& last_line) {
                             const std::string end = encode(HostEnd{number, status, last_line});
                             links_.erase(number);
                             send_(Kind::kHostEnded, end);
                           }});
  link->pause(paused_);
  links_[number] = std::move(link);
}

void HostRelay::pause(bool paused) {
  paused_ = paused;
  for (const auto& [number, link] : links_) link->pause(paused);
}

void HostRelay::end_inputs() {
  for (const auto& [number, link] : links_) link->end_input();
}

}  // namespace lrun::launcher
