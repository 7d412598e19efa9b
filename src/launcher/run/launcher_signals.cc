#include "run/launcher_signals.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/own_signals.h"

namespace lrun::launcher {

std::optional<LauncherSignal> launcher_signal(const ReceivedSignal& received, const Guard& guard) {
  if (received.number != forwarded_signal()) return LauncherSignal{received.number, received.sender == guard.pid()};
  // The handler of the guard's death sends it from this very process.
  if (received.sender == ::getpid() && guard.has_died()) return LauncherSignal{};
  if (received.sender != guard.pid()) return std::nullopt;
  guard.note_heard();
  return LauncherSignal{received.value, true};
}

LauncherSignals::LauncherSignals(const Guard& guard, Facts facts, Events events)
    : guard_(guard), facts_(std::move(facts)), events_(std::move(events)) {}

void LauncherSignals::begin(EventLoop& loop) {
  std::vector<int> numbers = handled_signals(facts_.stop_signals);
  for (const int own : {SIGCHLD, forwarded_signal()}) numbers.push_back(own);
  source_.emplace(loop, numbers, [this](const ReceivedSignal& signal) { received(signal); });
}

void LauncherSignals::received(const ReceivedSignal& signal) {
  if (signal.number == SIGCHLD) return events_.child_ended();
  const std::optional<LauncherSignal> meant = launcher_signal(signal, guard_);
  if (!meant) return;
  if (meant->number == 0) return events_.guard_died();
  // The kernel continues the launcher when its guard ends. The death itself comes with its own signal.
  if (signal.number == SIGCONT && guard_.has_died()) return;
  if (signal.number == SIGWINCH) return events_.window_changed();
  arrived(*meant);
}

void LauncherSignals::arrived(const LauncherSignal& signal) {
  const bool is_echo = echo_.is_echo(signal.number, signal.forwarded, facts_.now());
  const bool is_repeated = end_was_asked_ && signal.number == SIGTERM && facts_.repeats_term;
  SignalArrived event{.signal_number = signal.number, .forwarded = signal.forwarded};
  event.named =
      std::find(facts_.stop_signals.begin(), facts_.stop_signals.end(), signal.number) != facts_.stop_signals.end();
  event.may_hurry = !is_repeated;
  event.by_head = facts_.passed_on_by_head && facts_.passed_on_by_head(signal.number);
  event.head_lost = facts_.head_is_lost && facts_.head_is_lost();
  events_.arrived(event, is_echo || is_repeated);
}

}  // namespace lrun::launcher
