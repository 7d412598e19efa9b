#include "faults/job_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "faults/chance.h"

namespace lrun::test {
namespace {

using Kind = JobDeed::Kind;
using std::chrono::milliseconds;

const std::vector<std::pair<Kind, const char*>>& names() {
  static const std::vector<std::pair<Kind, const char*>> kNames{
      {Kind::kStart, "starts"},
      {Kind::kKillAll, "both processes are killed"},
      {Kind::kKillGuard, "the guard is killed"},
      {Kind::kKillLauncher, "the launcher is killed"},
      {Kind::kKillWorker, "a worker is killed"},
      {Kind::kTerminate, "receives SIGTERM"},
      {Kind::kStopLauncher, "is stopped"},
      {Kind::kStopNode, "is stopped with its workers"},
      {Kind::kContinue, "continues"},
      {Kind::kCut, "is cut off"},
      {Kind::kCutToLeader, "is not heard"},
      {Kind::kCutFromLeader, "does not hear"},
      {Kind::kHeal, "is connected again"},
  };
  return kNames;
}

/// The deeds that may follow for a launcher: only a stopped one can continue.
class Launchers {
 public:
  Launchers(JobPlan& plan, Chance& chance) : plan_(plan), chance_(chance) {
    for (const bool late : plan.late) states_.push_back(late ? State::kGone : State::kRuns);
  }

  JobDeed next() {
    const int launcher = chance_.below(plan_.launchers);
    const bool is_leader = launcher == 0;
    State& state = states_[static_cast<std::size_t>(launcher)];
    Kind kind = Kind::kStart;
    if (state == State::kStopped) {
      kind = Kind::kContinue;
    } else if (state == State::kCut) {
      kind = Kind::kHeal;
    } else if (state == State::kRuns) {
      std::vector<Kind> kinds{Kind::kKillAll,    Kind::kKillAll,      Kind::kKillGuard, Kind::kKillLauncher,
                              Kind::kKillWorker, Kind::kStopLauncher, Kind::kStopNode,  Kind::kTerminate};
      // The leader is not behind a proxy of its own.
      if (!is_leader) kinds.insert(kinds.end(), {Kind::kCut, Kind::kCut, Kind::kCutToLeader, Kind::kCutFromLeader});
      // Most jobs cannot go on without it, so this is rare.
      if (!is_leader || chance_.percent(30))
        kind = chance_.one_of(kinds);
      else
        kind = Kind::kKillWorker;
    }
    state = after(kind);
    return {kind, launcher, pause()};
  }

 private:
  enum class State { kGone, kRuns, kStopped, kCut };

  static State after(Kind kind) {
    switch (kind) {
      case Kind::kKillAll:
      case Kind::kKillGuard:
      case Kind::kKillLauncher:
      case Kind::kTerminate:
        return State::kGone;
      case Kind::kStopLauncher:
      case Kind::kStopNode:
        return State::kStopped;
      case Kind::kCut:
      case Kind::kCutToLeader:
      case Kind::kCutFromLeader:
        return State::kCut;
      default:
        return State::kRuns;
    }
  }

  /// Together, within a round, or after the consequences.
  milliseconds pause() { return milliseconds(chance_.below(chance_.one_of(std::vector<int>{1, 50, 500, 4000}))); }

  JobPlan& plan_;
  Chance& chance_;
  std::vector<State> states_;
};

}  // namespace

JobPlan make_job_plan(std::uint64_t seed, int number) {
  Chance chance(seed, number);
  JobPlan plan;
  plan.backend = chance.percent(60) ? "c10d" : "static";
  plan.launchers = chance.between(2, 4);
  plan.most = chance.percent(80) ? plan.launchers : std::max(2, plan.launchers - 1);
  plan.least = chance.between(1, plan.most);
  plan.workers = chance.percent(70) ? 1 : 2;
  plan.max_restarts = chance.below(3);
  for (int i = 0; i < plan.launchers; ++i) plan.late.push_back(i >= std::max(plan.least, 1) && chance.percent(30));
  plan.begins_at_once = chance.percent(25);
  Launchers launchers(plan, chance);
  for (int i = chance.between(1, 6); i > 0; --i) plan.deeds.push_back(launchers.next());
  plan.goes_on_for = milliseconds(chance.below(chance.one_of(std::vector<int>{500, 8000})));
  plan.heals = chance.percent(75);
  return plan;
}

std::string to_text(const JobPlan& plan) {
  std::string text =
      fmt::format("{} launchers of {} workers, --nnodes {}:{}, {}, --max-restarts {}{}\n", plan.launchers, plan.workers,
                  plan.least, plan.most, plan.backend, plan.max_restarts, plan.begins_at_once ? ", at once" : "");
  for (int i = 0; i < plan.launchers; ++i) {
    if (plan.late[static_cast<std::size_t>(i)]) text += fmt::format("  launcher {} comes later\n", i);
  }
  for (const JobDeed& deed : plan.deeds) {
    const auto name =
        std::find_if(names().begin(), names().end(), [&](const auto& entry) { return entry.first == deed.kind; });
    text += fmt::format("  after {} ms launcher {}: {}\n", deed.after.count(), deed.launcher, name->second);
  }
  text += fmt::format("  ends {} ms later\n", plan.goes_on_for.count());
  return text + (plan.heals ? "" : "  what is cut stays so\n");
}

bool is_disturbed(const JobPlan& plan, int launcher) {
  return std::any_of(plan.deeds.begin(), plan.deeds.end(), [&](const JobDeed& deed) {
    return deed.launcher == launcher && deed.kind != Kind::kKillWorker && deed.kind != Kind::kStart;
  });
}

bool has_deed(const JobPlan& plan, Kind kind) {
  return std::any_of(plan.deeds.begin(), plan.deeds.end(), [&](const JobDeed& deed) { return deed.kind == kind; });
}

}  // namespace lrun::test
