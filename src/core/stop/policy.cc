// In: the state of an attempt and an event. Out: the next state, and the actions to carry out. Pure. Supervisor calls
// decide() for every event.
#include "stop/policy.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace lrun::inline core {
namespace {

using Phase = SupervisionState::Phase;

/// Nothing has asked for the end of the attempt yet, or it is over and the next one may still be called off.
bool may_begin_stop(const SupervisionState& state) {
  return state.phase == Phase::kRunning || state.phase == Phase::kBackingOff;
}

/// The places of the workers may show which one the others wait for. They are gone once the workers get a signal.
bool is_worth_a_look(const SupervisionState& state) {
  if (!state.looks || state.suspended) return false;
  switch (state.end.kind) {
    case RunEnd::Kind::kTimedOut:
    case RunEnd::Kind::kStartTimedOut:
      return true;
    case RunEnd::Kind::kHang:
      return !state.end.is_ours();  // or else they have been looked at
    case RunEnd::Kind::kWatched:
      return state.end.limit_ms > 0;  // a silence, in which ranks may wait in vain
    case RunEnd::Kind::kWorkerFailed:
      return state.only_victims;
    case RunEnd::Kind::kInterrupted:  // by a person: a scheduler's time is short
      return state.end.signal_number == SIGINT && (state.succeeded > 0 || state.quiet) &&
             state.grace > Duration::zero();
    case RunEnd::Kind::kRequested:
      return state.succeeded > 0;
    default:
      return false;
  }
}

Decision tell_to_end(Decision decision, int signal_number) {
  const SupervisionState& state = decision.state;
  if (state.suspended) {
    decision.state.suspended = false;  // a stopped process cannot obey a signal
    decision.actions.emplace_back(Resume{});
  }
  const bool from_terminal = signal_number == SIGINT || signal_number == SIGQUIT || signal_number == SIGHUP;
  decision.actions.emplace_back(StopWorkers{signal_number, from_terminal});
  if (state.grace == Duration::zero()) {
    decision.state.phase = Phase::kKilling;
    decision.actions.emplace_back(KillGroups{});
  } else {
    decision.state.phase = Phase::kStopping;
    decision.actions.emplace_back(ArmGrace{state.grace});
  }
  return decision;
}

Decision begin_stop(SupervisionState state, RunEnd reason, int signal_number) {
  state.end = std::move(reason);
  if (state.running == 0) {
    state.phase = Phase::kOver;
    return {state, {Announce{}, Finish{}}};
  }
  if (!is_worth_a_look(state)) return tell_to_end({state, {Announce{}}}, signal_number);
  state.phase = Phase::kLooking;
  state.stop_signal = signal_number;
  return {state, {Announce{}, LookAtWorkers{}}};
}

/// Lingering processes are not our children, so their numbers may be reused: finishing kills them with everything else
/// that is left.
Decision kill_now(SupervisionState state) {
  if (state.phase == Phase::kOver) return {state, {}};
  if (state.phase == Phase::kLingering || state.phase == Phase::kBackingOff) {
    state.phase = Phase::kOver;
    return {state, {Finish{}}};
  }
  state.phase = Phase::kKilling;
  return {state, {KillGroups{}}};
}

Decision settle(SupervisionState state, RunEnd end, Duration moment) {
  const bool settles = state.phase == Phase::kSettling;
  state.phase = Phase::kSettling;
  state.end = std::move(end);
  // A moment that was asked for goes on after an error, since others may fail as well.
  return settles ? Decision{state, {}} : Decision{state, {ArmSettle{moment}}};
}

Duration moment_after(const SupervisionState& state, const WorkerEnded& failure) {
  if (failure.victim) return state.settle_for_victims;
  return failure.starting ? std::max(state.settle, state.settle_at_start) : state.settle;
}

Decision on_failure(const SupervisionState& state, const WorkerEnded& failure) {
  const Duration moment = moment_after(state, failure);
  if (state.running == 0 || moment == Duration::zero()) {
    return begin_stop(state, {RunEnd::Kind::kWorkerFailed}, SIGTERM);
  }
  return settle(state, {RunEnd::Kind::kWorkerFailed}, moment);
}

Decision when_last_ended(SupervisionState state) {
  if (state.running > 0) return {state, {}};
  if (state.phase == Phase::kSettling) return begin_stop(state, state.end, SIGTERM);
  state.phase = state.phase == Phase::kStopping ? Phase::kLingering : Phase::kOver;
  return {state, {Finish{}}};
}

Decision on(SupervisionState state, const WorkerEnded& event) {
  --state.running;
  if (event.success) ++state.succeeded;
  if (!event.success && !event.victim) state.only_victims = false;
  const bool working = state.phase == Phase::kRunning || state.phase == Phase::kSettling;
  if (!event.success && working) return on_failure(state, event);
  return when_last_ended(state);
}

Decision on(SupervisionState state, const StartCalledOff& event) {
  state.running -= event.workers;
  return when_last_ended(state);
}

Decision on(const SupervisionState& state, const SettleExpired&) {
  if (state.phase != Phase::kSettling) return {state, {}};
  return begin_stop(state, state.end, SIGTERM);
}

/// A user who interrupts a run that is already stopping does not want to wait. A TERM after a failure may come from a
/// scheduler that stops the rest of a job: there the grace period stays. HUP often comes along with another signal.
bool is_impatient(const SupervisionState& state, int signal_number) {
  if (state.end.kind != RunEnd::Kind::kInterrupted) return signal_number == SIGINT;
  return state.asked && (signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGQUIT);
}

bool in_grace(const SupervisionState& state) {
  return state.phase == Phase::kLooking || state.phase == Phase::kStopping || state.phase == Phase::kLingering;
}

Decision on(SupervisionState state, const SignalArrived& event) {
  switch (event.signal_number) {
    case SIGTSTP:
      if (state.suspended) return {state, {}};
      state.suspended = true;
      return {state, {Suspend{}}};
    case SIGCONT:
      if (!state.suspended) return {state, {}};
      state.suspended = false;
      return {state, {Resume{}}};
    case SIGUSR1:
    case SIGUSR2:
      if (event.named) break;
      if (!event.forwarded) return {state, {}};
      return {state, {PassOn{event.signal_number}}};
    default:
      break;
  }
  if (state.phase == Phase::kSettling) {
    state.unwanted = true;
    return begin_stop(state, state.end, event.signal_number);
  }
  if (may_begin_stop(state)) {
    state.asked = event.forwarded;
    state.quiet = event.in_quiet;
    return begin_stop(state, event.end(), event.signal_number);
  }
  state.unwanted = true;
  if (!event.forwarded || !in_grace(state)) return {state, {}};
  const bool hurries = event.may_hurry && is_impatient(state, event.signal_number);
  state.asked = true;
  return hurries ? kill_now(state) : Decision{state, {}};
}

Decision on(SupervisionState state, const GraceExpired&) {
  if (!in_grace(state)) return {state, {}};
  if (state.phase == Phase::kStopping) state.end.grace_expired = true;
  return kill_now(state);
}

Decision on(SupervisionState state, const ConsoleClosed&) {
  state.unwanted = true;
  if (state.phase == Phase::kSettling) return begin_stop(state, state.end, SIGTERM);
  if (!may_begin_stop(state)) return {state, {}};
  return begin_stop(state, {RunEnd::Kind::kConsoleClosed}, SIGTERM);
}

Decision on(SupervisionState state, const StopRequested&) {
  state.unwanted = true;
  if (state.phase == Phase::kSettling) return begin_stop(state, state.end, SIGTERM);
  if (!may_begin_stop(state)) return {state, {}};
  return begin_stop(state, {RunEnd::Kind::kRequested}, SIGTERM);
}

Decision on(SupervisionState state, const TimeIsOver& event) {
  if (!event.may_restart) state.unwanted = true;
  if (state.phase == Phase::kSettling) return begin_stop(state, state.end, SIGTERM);
  if (!may_begin_stop(state)) return {state, {}};
  const bool waits = event.moment > Duration::zero() && state.phase == Phase::kRunning;
  return waits ? settle(state, event.end, event.moment) : begin_stop(state, event.end, SIGTERM);
}

Decision on(const SupervisionState& state, const LookedAtWorkers&) {
  if (state.phase != Phase::kLooking) return {state, {}};
  return tell_to_end({state, {}}, state.stop_signal);
}

/// A worker's failure here, told or about to be, stays the reason here: the verdict compares it with the others'.
Decision on(SupervisionState state, const StoppedElsewhere& event) {
  if (!event.end.may_go_on()) state.unwanted = true;
  if (event.end.kind == RunEnd::Kind::kWorkerFailed && !event.victim) state.only_victims = false;
  if (state.phase == Phase::kSettling) return begin_stop(state, state.end, SIGTERM);
  if (!may_begin_stop(state)) return {state, {}};
  const bool by_signal = event.end.kind == RunEnd::Kind::kInterrupted;
  return begin_stop(state, event.end, by_signal ? event.end.signal_number : SIGTERM);
}

/// A process in an uninterruptible sleep, or in a frozen cgroup, may never end.
Decision on(SupervisionState state, const KillExpired&) {
  if (state.phase != Phase::kKilling || state.running == 0) return {state, {}};
  state.running = 0;
  state.phase = Phase::kOver;
  return {state, {GiveUp{}, Finish{}}};
}

/// Nobody is left who waits for the run or could stop it politely.
Decision on(SupervisionState state, const GuardDied&) {
  state.unwanted = true;
  if (!may_begin_stop(state)) return kill_now(state);
  state.end = {RunEnd::Kind::kGuardDied};
  Decision decision = kill_now(state);
  decision.actions.insert(decision.actions.begin(), Announce{});
  return decision;
}

Decision on(SupervisionState state, const RestartPlanned& event) {
  if (state.unwanted) return {state, {Finish{}}};
  state.phase = Phase::kBackingOff;
  return {state, {ArmBackoff{event.delay}}};
}

/// A stop, or the end of the run's time, may have come with it (the machine was asleep, lrun was stopped): it is still
/// unread, and has to find a run that can be ended.
Decision on(const SupervisionState& state, const BackoffExpired&) {
  if (state.phase != Phase::kBackingOff) return {state, {}};
  return {state, {ConfirmStart{}}};
}

Decision on(SupervisionState state, const StartConfirmed&) {
  if (state.phase != Phase::kBackingOff) return {state, {}};
  if (state.suspended) return {state, {ArmBackoff{Duration::zero()}}};  // whose clock stands still until CONT
  state.phase = Phase::kOver;
  return {state, {StartAgain{}}};
}

}  // namespace

RunEnd SignalArrived::end() const {
  if (head_lost) return {.kind = RunEnd::Kind::kHeadLost};
  return {.kind = RunEnd::Kind::kInterrupted, .signal_number = signal_number, .by_head = by_head};
}

Decision decide(const SupervisionState& state, const Event& event) {
  return std::visit([&](const auto& one) { return on(state, one); }, event);
}

}  // namespace lrun::inline core
