// In: the processes of an attempt, while they print nothing. Out: a note that they wait for each other in vain.
// AttemptLoop owns one for each attempt of a Python program.
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
/// However long ranks stood still and went on.
constexpr Duration kMostPatience = std::chrono::minutes(5);
/// All of a large job would ask too much.
constexpr int kMostAskers = 8;

}  // namespace

StandstillMonitor::StandstillMonitor(EventLoop& loop, Facts facts)
    : loop_(loop), facts_(std::move(facts)), looked_(steady_now()) {
  timer_ = loop_.after(facts_.period, [this] { look_again(); });
}

void StandstillMonitor::look_again() {
  timer_ = loop_.after(facts_.period, [this] { look_again(); });
  const SupervisionState& state = facts_.attempt.supervisor().state();
  const bool may_stand = may_stand_still();
  const bool were_quiet = quiet_since_last_look();
  if (state.phase != SupervisionState::Phase::kRunning || state.suspended) return before_.clear();
  if (!may_stand || !were_quiet) return ranks_move();
  if (looking_) return;
  looking_ = facts_.look(loop_, facts_.attempt.processes(), LookKind::kUndisturbed,
                         [this](const auto& samples, const std::string&) {
                           if (samples && !samples->empty()) saw(*samples);
                           looking_.reset();
                         });
}

void StandstillMonitor::ranks_move() {
  const SteadyTime now = steady_now();
  if (told_ && !before_.empty()) {
    lesson_ = std::max(lesson_, std::min(2 * std::chrono::floor<Duration>(now - since_), kMostPatience));
  }
  told_ = false;
  since_ = now;
  before_.clear();
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

/// Not for a period: a look may come late, and a rank that prints a line and waits again need not show in its activity.
bool StandstillMonitor::quiet_since_last_look() {
  const SteadyTime now = steady_now();
  const SteadyTime last = std::exchange(looked_, now);
  return are_quiet(facts_.attempt, facts_.logs, std::chrono::ceil<Duration>(now - last));
}

std::vector<int> StandstillMonitor::busy_ranks() {
  std::vector<int> busy;
  for (const WorkerStatus& worker : meter_.measure(facts_.launcher, facts_.attempt.running())) {
    const int percent = worker.use.cpu_percent;
    if (percent < 0 || percent > kIdlePercent) busy.push_back(worker.rank);
  }
  return busy;
}

void StandstillMonitor::saw(std::vector<StackSample> samples) {
  TwoLooks looks = looks_at_store();
  looks.before = before_;
  looks.now = std::move(samples);
  looks.busy = busy_ranks();
  const Membership& membership = facts_.attempt.membership();
  looks.whole_world = looks.now.size() == static_cast<std::size_t>(membership.world_size);
  if (!stand_still(looks)) ranks_move();
  seen_ = steady_now();
  const Duration lasted = std::chrono::floor<Duration>(seen_ - since_);
  std::optional<Standstill> found = find_standstill(looks);
  if (!told_ && found && found->at_start) {
    looks.outside_store = facts_.attempt.without_connection();
    found = find_standstill(looks);
  }
  if (!told_ && found && is_long(*found, lasted)) tell(*found, lasted, looks.whole_world);
  before_ = std::move(looks.now);
  if (!told_ && !looks.whole_world && is_long({.groups = {}, .is_for_good = true}, lasted)) ask_others();
}

/// At no rank yet.
TwoLooks StandstillMonitor::looks_at_store() const {
  const Membership& membership = facts_.attempt.membership();
  return {.store_address = fmt::format("{}:{}", membership.master_addr, membership.master_port),
          .store_has_number = is_numeric_address(membership.master_addr)};
}

/// Half a period less than the constants say, as a look may come a moment early.
bool StandstillMonitor::is_long(const Standstill& standstill, Duration lasted) const {
  const int periods = standstill.at_start ? kStartPeriods : standstill.is_for_good ? kForGoodPeriods : kPatiencePeriods;
  return lasted >= std::max(periods * facts_.period - facts_.period / 2, lesson_);
}

void StandstillMonitor::ask_others() {
  if (facts_.attempt.membership().self.node_rank >= kMostAskers) return;
  asking_ = std::make_shared<int>();
  facts_.ask([this, asking = std::weak_ptr<void>(asking_)](const std::string& answers) {
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
  const std::optional<Standstill> found = find_standstill(world);
  if (found && is_long(*found, lasted)) tell(*found, lasted, true);
}

void StandstillMonitor::tell(const Standstill& standstill, Duration lasted, bool whole_world) {
  told_ = true;
  const std::string note = fmt::format("no rank {}has moved for {}: {}", whole_world ? "" : "of this node ",
                                       format_duration(std::chrono::round<std::chrono::seconds>(lasted)),
                                       stacks_in_a_sentence(standstill.groups));
  if (!whole_world) {
    facts_.sink.note(note);
    return facts_.sink.hint(standstill.hint);
  }
  facts_.sink.message_of_job(Severity::kNote, note);
  facts_.sink.message_of_job(Severity::kHint, standstill.hint);
}

}  // namespace lrun::launcher
