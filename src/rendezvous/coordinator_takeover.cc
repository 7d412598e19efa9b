// How a coordinator goes on with a job that another one has begun.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator.h"

namespace lrun {

void Coordinator::resume(const JobState& state, SteadyTime now) {
  phase_ = Phase::kDeciding;
  resumed_ = now;
  goes_on_ = true;  // the round was lost with its holder
  round_ = state.round;
  attempt_ = state.attempt;
  history_ = state.history;
  expected_ = state.members;
  std::erase(expected_, state.holder);
}

JobState Coordinator::state() const {
  JobState state{.round = round_, .attempt = attempt_, .history = history_};
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.in_round) state.members.push_back(launcher.record.token);
  }
  return state;
}

/// It may know more than the last holder could leave behind: a round that has begun since. Where the job goes on
/// without it, it is a newcomer, once its workers are stopped.
void Coordinator::take_back(Launcher& launcher, int round, SteadyTime now) {
  newest_ = std::max(newest_, round);
  if (phase_ == Phase::kMeeting) resume({.round = round}, now);
  launcher.in_round = resumed_ && phase_ == Phase::kDeciding && round + 1 >= round_;
  launcher.busy = !launcher.in_round;
  if (!launcher.in_round) return;
  round_ = std::max(round_, round);
  ++members_;
}

bool Coordinator::all_are_back() const {
  return !expected_.empty() && std::all_of(expected_.begin(), expected_.end(), [this](const std::string& token) {
    return std::any_of(launchers_.begin(), launchers_.end(),
                       [&](const auto& entry) { return entry.second.record.token == token; });
  });
}

bool Coordinator::waits_for_others(SteadyTime now) const {
  return resumed_ && now < *resumed_ + times_.heartbeat && !all_are_back();
}

}  // namespace lrun
