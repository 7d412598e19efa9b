// In: the processes of an attempt, while they print nothing. Out: a note that they wait for each other in vain.
// AttemptLoop owns one for each attempt of a Python program.
#include "run/standstill_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "inspect/process_look.h"
#include "report/stack_text.h"
#include "run/attempt_status.h"

namespace lrun::launcher {
namespace {

/// A rank that waits for something of its own may yet go on: an answer of another host, a lock with a limit.
constexpr int kPatiencePeriods = 5;

}  // namespace

StandstillMonitor::StandstillMonitor(EventLoop& loop, Facts facts) : loop_(loop), facts_(std::move(facts)) {
  timer_ = loop_.after(facts_.period, [this] { look_again(); });
}

void StandstillMonitor::look_again() {
  timer_ = loop_.after(facts_.period, [this] { look_again(); });
  const SupervisionState& state = facts_.attempt.supervisor().state();
  const bool works = state.phase == SupervisionState::Phase::kRunning && !state.suspended;
  const bool may_stand = may_stand_still();
  if (!works || !are_quiet(facts_.attempt, facts_.logs, facts_.period)) {
    before_.clear();
    told_ = false;
    return;
  }
  if (!may_stand) before_.clear();
  if (!may_stand || told_ || looking_) return;
  looking_ = facts_.look(loop_, facts_.attempt.processes(), LookKind::kUndisturbed,
                         [this](const auto& samples, const std::string&) {
                           saw(samples.value_or(std::vector<StackSample>()));
                           looking_.reset();
                         });
}

/// A cheap sign, so that the stacks of a run that works are never read: a few bytes for each rank.
bool StandstillMonitor::may_stand_still() {
  bool any = false;
  std::map<pid_t, std::int64_t> now;
  for (const RankProcess& process : facts_.attempt.running()) {
    const std::int64_t activity = activity_of(process.pid);
    now[process.pid] = activity;
    const auto before = activity_.find(process.pid);
    any = any || (activity > 0 && before != activity_.end() && has_rested(before->second, activity));
  }
  activity_ = std::move(now);
  return any;
}

std::vector<int> StandstillMonitor::busy_ranks() {
  std::vector<int> busy;
  for (const WorkerStatus& worker : meter_.measure(facts_.launcher, facts_.attempt.running())) {
    if (worker.use.cpu_percent != 0) busy.push_back(worker.rank);
  }
  return busy;
}

void StandstillMonitor::saw(std::vector<StackSample> samples) {
  TwoLooks looks{.before = std::move(before_), .now = std::move(samples), .busy = busy_ranks()};
  const Membership& membership = facts_.attempt.membership();
  looks.whole_world = looks.now.size() == static_cast<std::size_t>(membership.world_size);
  looks.none_in_store = facts_.outside().size() == looks.now.size();
  looks.store_address = fmt::format("{}:{}", membership.master_addr, membership.master_port);
  const SteadyTime now = steady_now();
  const std::optional<Standstill> found = find_standstill(looks);
  if (!found) since_ = now;
  if (found && (found->is_for_good || now - since_ >= kPatiencePeriods * facts_.period)) {
    told_ = true;
    tell(*found, looks.whole_world);
  }
  before_ = std::move(looks.now);
}

void StandstillMonitor::tell(const Standstill& standstill, bool whole_world) {
  const Duration lasted = std::chrono::round<std::chrono::seconds>(steady_now() - since_);
  facts_.sink.note(fmt::format("no rank {}has moved for {}: {}", whole_world ? "" : "of this node ",
                               format_duration(lasted), stacks_in_a_sentence(standstill.groups)));
  facts_.sink.hint(standstill.hint);
}

}  // namespace lrun::launcher
