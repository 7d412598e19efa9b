#include "run/hang_monitor.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "process/cpu_time.h"
#include "report/stack_text.h"

namespace lrun::launcher {
namespace {

HangRules rules_of(const LaunchPlan& plan) {
  const long ticks = ::sysconf(_SC_CLK_TCK);
  return {plan.hang_timeout.value, plan.hang_signal == HangSignal::kCpu,
          ticks > 0 ? static_cast<std::uint64_t>(ticks) : 100};
}

}  // namespace

HangMonitor::HangMonitor(EventLoop& loop, const LaunchPlan& plan, Attempt& attempt, const LogRouter& logs,
                         MessageSink& sink, const LookAtRanks& look)
    : loop_(loop),
      plan_(plan),
      attempt_(attempt),
      logs_(logs),
      sink_(sink),
      look_(look),
      watch_(
          loop, rules_of(plan), [this] { return progress(); }, [this] { hangs(); }) {}

RunProgress HangMonitor::progress() const {
  const SupervisionState& state = attempt_.supervisor().state();
  RunProgress now;
  now.counts = state.phase == SupervisionState::Phase::kRunning && !state.suspended && !attempt_.waits_for_files();
  now.steps = attempt_.steps();
  now.bytes = logs_.bytes_read();
  now.output_is_seen = captures_any(plan_.output, plan_.nodes.front().workers);
  if (plan_.hang_signal == HangSignal::kCpu) {
    std::vector<pid_t> leaders;
    for (const RankProcess& process : attempt_.running()) leaders.push_back(process.pid);
    now.cpu_ticks = cpu_ticks_of_sessions(leaders);
  }
  return now;
}

/// Stacks come first: a worker that got a signal to end is no longer where it hung.
void HangMonitor::hangs() {
  sink_.message_of_job(Severity::kWarning, "no progress for " + format_duration(plan_.hang_timeout.value) +
                                               "; looking where every rank is");
  looking_ = look_(loop_, attempt_.processes(), LookKind::kFull,
                   [this](const auto& samples, const std::string& problem) { saw_stacks(samples, problem); });
}

/// A file keeps the stacks, since the console may be gone in the morning. Errors are ignored: the stacks were printed.
void HangMonitor::keep(std::string_view stacks) const {
  if (stacks.empty()) return;
  if (const Fd file = attempt_.files().open("stacks.txt")) (void)write_all(file.get(), stacks);
}

void HangMonitor::saw_stacks(const std::optional<std::vector<StackSample>>& samples, const std::string& problem) {
  const std::vector<StackGroup> groups = fold_stacks(samples.value_or(std::vector<StackSample>()));
  const std::string text = samples ? stack_text(*samples) : std::string();
  if (samples) {
    sink_.print_of_job(text);
  } else {
    sink_.message_of_job(Severity::kWarning, "no rank could be asked where it is: " + problem);
  }
  keep(text);
  RunEnd end{RunEnd::Kind::kHang};
  end.who = stacks_in_a_sentence(groups);
  end.limit_ms = plan_.hang_timeout.value.count();
  if (plan_.on_hang == OnHang::kDump) return;
  attempt_.supervisor().saw_workers(places_of(groups));
  attempt_.supervisor().handle(TimeIsOver{end, plan_.on_hang == OnHang::kRestart});
}

}  // namespace lrun::launcher
