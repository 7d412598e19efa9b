// In: the processes of an attempt, while they print nothing. Out: a note that they wait for each other in vain.
// AttemptLoop owns one for each attempt.
#include "run/standstill_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/numeric_address.h"
#include "inspect/job_answers.h"
#include "inspect/process_look.h"
#include "report/stack_text.h"
#include "run/attempt_status.h"

namespace lrun::launcher {
namespace {

/// Ranks have to stand still for so many periods until that is told. Also: launchers look at different moments, and
/// those of a job have to stand still at the same time.
constexpr int kForGoodPeriods = 3;
/// A rank that waits for something of its own may yet go on: an answer of another host, a lock with a limit.
constexpr int kPatiencePeriods = 4;
/// A rank that has not begun may have data to fetch.
constexpr int kStartPeriods = 14;
/// Of a processor: a watchdog's work, or that of a thread that measures.
constexpr int kIdlePercent = 1;
/// Threads of a rank of liblrun that measure run so often in a period; those that get data run more often.
constexpr std::int64_t kFewWakes = 20;
/// While ranks report no calls.
constexpr Duration kMostPause = std::chrono::minutes(1);
/// However long ranks stood still and went on.
constexpr Duration kMostPatience = std::chrono::minutes(5);
/// All of a large job would ask too much.
constexpr int kMostAskers = 8;

}  // namespace

void StandstillMonitor::begin() {
  if (!timer_.armed()) timer_ = loop_.after(facts_.period, [this] { look_again(); });
}

void StandstillMonitor::end_look() {
  looking_.reset();
  end_closer_look();
}

/// Nothing was told yet.
void StandstillMonitor::end_closer_look() {
  if (std::exchange(closer_, nullptr)) told_ = false;
}

void StandstillMonitor::look_again() {
  const bool calls = has_calls();
  const bool can_see = facts_.reads_python || calls;
  pause_ = can_see ? facts_.period : std::min(2 * std::max(pause_, facts_.period), kMostPause);
  timer_ = loop_.after(pause_, [this] { look_again(); });
  const bool may_stand = can_see && may_stand_still(calls);
  const bool were_quiet = quiet_since_last_look();
  if (!are_running()) {
    end_closer_look();
    return before_.clear();
  }
  if (!may_stand || !were_quiet) return ranks_move();
  if (looking_ || closer_) return;
  looking_ = facts_.look(loop_, facts_.attempt.processes(), LookKind::kUndisturbed,
                         [this](const auto& samples, const std::string&) {
                           if (samples && !samples->empty()) saw(*samples);
                           looking_.reset();
                         });
}

bool StandstillMonitor::are_running() const {
  const SupervisionState& state = facts_.attempt.supervisor().state();
  return state.phase == SupervisionState::Phase::kRunning && !state.suspended;
}

void StandstillMonitor::ranks_move() {
  const SteadyTime now = steady_now();
  end_closer_look();
  if (told_ && !before_.empty()) {
    lesson_ = std::max(lesson_, std::min(2 * std::chrono::floor<Duration>(now - since_), kMostPatience));
  }
  told_ = false;
  since_ = now;
  before_.clear();
}

bool StandstillMonitor::has_calls() const {
  for (std::size_t i = 0; i < facts_.attempt.workers().size(); ++i) {
    if (facts_.attempt.progress(i).calls > 0) return true;
  }
  return false;
}

bool StandstillMonitor::has_whole_world() const {
  return std::ssize(facts_.attempt.workers()) == facts_.attempt.membership().world_size;
}

/// Not one that a process left behind which died in it.
ReportedCall StandstillMonitor::call_of(std::size_t worker) const {
  const Progress progress = facts_.attempt.progress(worker);
  if (!progress.call) return {};
  const Worker* const reporter = facts_.attempt.worker_of(static_cast<pid_t>(progress.calls_pid));
  return reporter == &facts_.attempt.workers()[worker] ? progress.call : ReportedCall();
}

/// A cheap sign, so that the stacks of a run that works are never read: a few bytes for each rank. Where ranks report
/// their calls, one of them has to wait in one, unless that may be so on another host.
bool StandstillMonitor::may_stand_still(bool calls) {
  const std::vector<Worker>& workers = facts_.attempt.workers();
  const bool only_calls = calls && has_whole_world();
  bool any = false;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (workers[i].process.status()) continue;
    const pid_t pid = workers[i].process.pid();
    const ReportedCall call = call_of(i);
    any = any || (call && calls_[pid] == call);
    calls_[pid] = call;
    if (only_calls) continue;
    const std::int64_t activity = activity_of(pid);
    any = any || (activity > 0 && activity_[pid] > 0 && has_rested(activity_[pid], activity));
    activity_[pid] = activity;
  }
  return any;
}

void StandstillMonitor::add_calls(std::vector<StackSample>& samples) const {
  const std::vector<Worker>& workers = facts_.attempt.workers();
  for (StackSample& sample : samples) {
    const auto worker =
        std::find_if(workers.begin(), workers.end(), [&](const Worker& it) { return it.rank == sample.rank; });
    if (worker == workers.end() || sample.has_ended() || sample.state == 'T') continue;
    sample.call = call_of(static_cast<std::size_t>(worker - workers.begin()));
  }
}

/// Not for a period: a look may come late, and a rank that prints a line and waits again need not show in its activity.
bool StandstillMonitor::quiet_since_last_look() {
  const SteadyTime now = steady_now();
  const SteadyTime last = std::exchange(looked_, now);
  return are_quiet(facts_.attempt, facts_.logs, std::chrono::ceil<Duration>(now - last));
}

/// Data that come in keep a thread awake which uses hardly any of a processor: those of a loader in C++ are not its
/// main thread's.
std::vector<int> StandstillMonitor::busy_ranks(const TwoLooks& looks) {
  std::vector<int> busy;
  for (const WorkerStatus& worker : meter_.measure(facts_.launcher, facts_.attempt.running())) {
    const int percent = worker.use.cpu_percent;
    const bool is_elsewhere =
        looks.calls_are_known && std::any_of(looks.now.begin(), looks.now.end(),
                                             [&](const StackSample& it) { return it.rank == worker.rank && !it.call; });
    const std::int64_t wakes = is_elsewhere ? activity_of_threads(working_process(worker.pid)) : 0;
    const std::int64_t before = std::exchange(wakes_[worker.pid], wakes);
    if (percent < 0 || percent > kIdlePercent || wakes - before > kFewWakes) busy.push_back(worker.rank);
  }
  return busy;
}

void StandstillMonitor::saw(std::vector<StackSample> samples) {
  TwoLooks looks = looks_at_store();
  add_calls(samples);
  for (StackSample& sample : samples) {
    const std::string operation = sample.call.operation();
    if (operation.empty()) continue;
    sample.state = 'S';  // a wait that spins is a wait
    sample.native = {{.function = operation, .place = {}}};
  }
  looks.before = before_;
  looks.now = std::move(samples);
  looks.busy = busy_ranks(looks);
  if (!stand_still(looks)) ranks_move();
  seen_ = steady_now();
  const Duration lasted = std::chrono::floor<Duration>(seen_ - since_);
  before_ = looks.now;
  if (told_) return;
  if (!has_whole_world()) {
    if (is_long({.groups = {}, .is_for_good = true}, lasted)) ask_others();
    return;
  }
  std::optional<Standstill> standstill = find_standstill(looks);
  if (standstill && standstill->at_start) {
    looks.outside_store = facts_.attempt.without_connection();
    standstill = find_standstill(looks);
  }
  if (standstill && is_long(*standstill, lasted)) found(*standstill, std::move(looks), lasted);
}

/// At no rank yet.
TwoLooks StandstillMonitor::looks_at_store() const {
  const Membership& membership = facts_.attempt.membership();
  return {.store_address = fmt::format("{}:{}", membership.master_addr, membership.master_port),
          .store_has_number = is_numeric_address(membership.master_addr),
          .calls_are_known = has_calls()};
}

/// Half a period less than the constants say, as a look may come a moment early.
bool StandstillMonitor::is_long(const Standstill& standstill, Duration lasted) const {
  const int periods = standstill.at_start ? kStartPeriods : standstill.is_for_good ? kForGoodPeriods : kPatiencePeriods;
  return lasted >= std::max(periods * facts_.period - facts_.period / 2, lesson_);
}

void StandstillMonitor::ask_others() {
  if (facts_.attempt.membership().self.node_rank >= kMostAskers) return;
  asking_ = std::make_shared<int>();
  facts_.ask(kStandstillWords, [this, asking = std::weak_ptr<void>(asking_)](const std::string& answers) {
    if (!asking.expired()) heard(answers);
  });
}

LauncherStacks StandstillMonitor::standing_still() const {
  const Membership& membership = facts_.attempt.membership();
  LauncherStacks stacks{.host = membership.self.name, .pid = facts_.launcher, .ranks = membership.self.workers};
  // In a large job an answer has room for a few stacks.
  bool at_start = false;
  for (const StackGroup& group : fold_stacks(before_)) {
    at_start = at_start || begins(group);
    stacks.samples.push_back(group.example);
    stacks.samples.back().alike.assign(group.ranks.begin() + 1, group.ranks.end());
  }
  stacks.still_ms = std::chrono::floor<Duration>(seen_ - since_).count();
  if (at_start) stacks.outside_store = facts_.attempt.without_connection();
  return stacks;
}

void StandstillMonitor::heard(const std::string& answers) {
  if (told_ || before_.empty()) return;  // the ranks here have moved meanwhile
  TwoLooks world = looks_at_store();
  const int world_size = facts_.attempt.membership().world_size;
  std::set<int> seen;
  Duration lasted = Duration::max();
  for (const std::string& answer : answers_of_job(answers)) {
    std::optional<LauncherStacks> stacks = launcher_stacks_from_json(answer);
    if (!stacks) return;
    lasted = std::min(lasted, Duration(stacks->still_ms));
    std::copy_if(stacks->outside_store.begin(), stacks->outside_store.end(), std::back_inserter(world.outside_store),
                 [&](int rank) { return rank >= 0 && rank < world_size; });
    for (StackSample& sample : stacks->samples) {
      std::vector<int> ranks = std::exchange(sample.alike, {});
      ranks.insert(ranks.begin(), sample.rank);
      for (const int rank : ranks) {
        if (rank < 0 || rank >= world_size || !seen.insert(rank).second) return;  // no answers of one attempt
        world.now.emplace_back(sample).rank = rank;
      }
    }
  }
  if (std::ssize(seen) != world_size) return;
  world.before = world.now;
  const std::optional<Standstill> standstill = find_standstill(world);
  if (standstill && is_long(*standstill, lasted)) found(*standstill, std::move(world), lasted);
}

/// The calls of ranks that reported them have no places yet.
void StandstillMonitor::found(const Standstill& standstill, TwoLooks looks, Duration lasted) {
  told_ = true;
  if (!looks.calls_are_known) return tell(standstill, lasted);
  look_closer([this, looks = std::move(looks), lasted](std::vector<StackSample> samples) {
    if (has_whole_world()) add_calls(samples);
    const std::optional<Standstill> seen = with_stacks(looks, samples);
    if (seen && are_running()) return tell(*seen, lasted);
    ranks_move();  // after twice as long there may be another look: each one stops them for a moment
  });
}

void StandstillMonitor::look_closer(std::function<void(std::vector<StackSample> samples)> seen) {
  if (has_whole_world()) {
    closer_ = facts_.look(loop_, facts_.attempt.processes(), LookKind::kBrief,
                          [this, seen = std::move(seen)](const auto& samples, const std::string&) {
                            const std::shared_ptr<void> ended = std::exchange(closer_, nullptr);
                            seen(samples.value_or(std::vector<StackSample>()));
                          });
    return;
  }
  closer_ = std::make_shared<int>();
  facts_.ask(kBriefStackWords,
             [this, asking = std::weak_ptr<void>(closer_), seen = std::move(seen)](const std::string& answers) {
               if (asking.expired()) return;
               closer_.reset();
               std::vector<StackSample> samples;
               for (const std::string& answer : answers_of_job(answers)) {
                 const std::optional<LauncherStacks> stacks = launcher_stacks_from_json(answer);
                 if (stacks) samples.insert(samples.end(), stacks->samples.begin(), stacks->samples.end());
               }
               seen(std::move(samples));
             });
}

void StandstillMonitor::tell(const Standstill& standstill, Duration lasted) {
  const Duration seconds = std::chrono::round<std::chrono::seconds>(lasted);
  facts_.sink.message_of_job(Severity::kNote, "no rank has moved for " + format_duration(seconds) + ": " +
                                                  stacks_in_a_sentence(standstill.groups));
  facts_.sink.message_of_job(Severity::kHint, standstill.hint);
}

}  // namespace lrun::launcher
