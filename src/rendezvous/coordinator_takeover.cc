// How a coordinator goes on with a job that another one has begun.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator.h"

namespace lrun {
namespace {

using Kind = LauncherMessage::Kind;

/// One that did not hear of its round may have been a newcomer when the last holder was lost.
bool took_part(const LauncherMessage& join, const JobState& state) {
  return join.takes_up || join.was_spare ||
         std::find(state.members.begin(), state.members.end(), join.join->token) != state.members.end();
}

}  // namespace

void Coordinator::resume(const JobState& state, SteadyTime now) {
  left_behind_ = state;
  opened_ = progress_ = now;
}

/// The launcher of the holder joins first, and before all of them one that knows whether this is a job that goes on;
/// who comes earlier may also be ready already, or have nothing more to do than to say why no round is to follow.
void Coordinator::knock(LauncherId from, const LauncherMessage& message, SteadyTime now) {
  const auto before =
      std::count_if(early_.begin(), early_.end(), [from](const auto& waiting) { return waiting.first == from; });
  if (message.kind != Kind::kJoin) {
    const bool is_last = message.kind == Kind::kBye;
    if (before == 1 || (is_last && before == 2)) early_.emplace_back(from, message);
    return;
  }
  if (before != 0) return;
  const bool is_host = message.join->token == host_;
  if (is_host) host_.clear();
  early_.emplace(is_host ? early_.begin() : early_.end(), from, message);
  if (left_behind_ && took_part(message, *left_behind_)) go_on_from(*std::exchange(left_behind_, {}), opened_);
  let_in(now);
}

void Coordinator::let_in(SteadyTime now) {
  if (!host_.empty() || left_behind_) return;
  for (const auto& [id, waiting] : std::exchange(early_, {})) {
    waiting.kind == Kind::kJoin ? join(id, waiting, now) : received(id, waiting, now);
  }
}

void Coordinator::go_on_from(const JobState& state, SteadyTime since) {
  phase_ = Phase::kDeciding;
  resumed_ = since;
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

/// Launchers that belonged to none have begun to meet before it came, and nobody has left anything behind for them.
bool Coordinator::is_of_another_job(const LauncherMessage& join) const {
  return join.takes_up && phase_ == Phase::kMeeting && is_new_;
}

/// It may know more than the last holder could leave behind: a round that has begun since. Where the job goes on
/// without it, it is a newcomer, once its workers are stopped.
void Coordinator::take_back(Launcher& launcher, int round, SteadyTime now) {
  newest_ = std::max(newest_, round);
  if (phase_ == Phase::kMeeting) go_on_from({.round = round}, now);
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
