// In: the processes of an attempt, while they print nothing. Out: a note that they wait for each other in vain.
// AttemptLoop owns one for each attempt of a Python program.
#include "run/standstill_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "inspect/job_answers.h"
#include "inspect/process_look.h"
#include "report/stack_text.h"
#include "run/attempt_status.h"

namespace lrun::launcher {
namespace {

/// A rank that waits for something of its own may yet go on: an answer of another host, a lock with a limit.
constexpr int kPatiencePeriods = 5;
/// Launchers look at different moments: ranks that stand still everywhere have to do so at the same time.
constexpr int kJobPeriods = 2;
/// All of a large job would ask too much.
constexpr int kMostAskers = 8;

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
  const bool is_alone = facts_.attempt.membership().num_nodes == 1;  // else others may ask
  if (!may_stand || (told_ && is_alone) || looking_) return;
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
  in_store_ = facts_.outside().size() != looks.now.size();
  looks.none_in_store = !in_store_;
  looks.store_address = store_address();
  const std::optional<Standstill> found = find_standstill(looks);
  seen_ = steady_now();
  if (!stand_still(looks)) since_ = seen_;
  before_ = std::move(looks.now);
  if (told_) return;
  const Duration lasted = std::chrono::floor<Duration>(seen_ - since_);
  if (found && (found->is_for_good || lasted >= kPatiencePeriods * facts_.period)) {
    tell(*found, lasted, looks.whole_world);
  } else if (!looks.whole_world && lasted >= kJobPeriods * facts_.period) {
    ask_others();
  }
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
  for (const StackGroup& group : fold_stacks(before_)) {
    stacks.samples.push_back(group.example);
    stacks.samples.back().alike.assign(group.ranks.begin() + 1, group.ranks.end());
  }
  stacks.still_ms = std::chrono::floor<Duration>(seen_ - since_).count();
  stacks.in_store = in_store_;
  return stacks;
}

void StandstillMonitor::heard(const std::string& answers) {
  if (told_ || before_.empty()) return;  // the ranks here have moved meanwhile
  TwoLooks world{.none_in_store = true, .store_address = store_address()};
  const int world_size = facts_.attempt.membership().world_size;
  std::set<int> seen;
  Duration lasted = Duration::max();
  for (const std::string& answer : answers_of_job(answers)) {
    std::optional<LauncherStacks> stacks = launcher_stacks_from_json(answer);
    if (!stacks) return;
    lasted = std::min(lasted, Duration(stacks->still_ms));
    world.none_in_store = world.none_in_store && !stacks->in_store;
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
  if (!found || lasted < (found->is_for_good ? kJobPeriods : kPatiencePeriods) * facts_.period) return;
  tell(*found, lasted, true);
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

std::string StandstillMonitor::store_address() const {
  const Membership& membership = facts_.attempt.membership();
  return fmt::format("{}:{}", membership.master_addr, membership.master_port);
}

}  // namespace lrun::launcher
