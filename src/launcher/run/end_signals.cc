#include "run/end_signals.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/own_signals.h"
#include "run/launcher_signals.h"

namespace lrun::launcher {
namespace {

bool ends_lrun(int signal_number, const std::vector<int>& stop_signals) {
  return std::find(stop_signals.begin(), stop_signals.end(), signal_number) != stop_signals.end();
}

std::vector<int> numbers_of(const std::vector<int>& stop_signals) {
  std::vector<int> all = handled_signals(stop_signals);
  all.push_back(forwarded_signal());
  return all;
}

}  // namespace

EndSignals::EndSignals(EventLoop& loop, const LaunchPlan& plan, const Guard& guard, std::function<void(int)> asked)
    : guard_(guard),
      stop_signals_(plan.stop_signals.numbers),
      asked_(std::move(asked)),
      source_(loop, numbers_of(stop_signals_), [this](const ReceivedSignal& signal) { received(signal); }) {}

void EndSignals::received(const ReceivedSignal& signal) {
  const std::optional<LauncherSignal> meant = launcher_signal(signal, guard_);
  if (meant && (meant->number == 0 || ends_lrun(meant->number, stop_signals_))) asked_(meant->number);
}

}  // namespace lrun::launcher
