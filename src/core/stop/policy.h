#pragma once

#include <variant>
#include <vector>

#include "base/duration.h"
#include "verdict/judge.h"

namespace lrun::inline core {

/// What the supervisor knows when it decides.
struct SupervisionState {
  enum class Phase {
    kRunning,     ///< workers work
    kSettling,    ///< one failed; the others have a moment to tell why before they are stopped
    kLooking,     ///< to be stopped; where they are is looked at before
    kStopping,    ///< told to end; the grace runs
    kKilling,     ///< killed; only their deaths are awaited
    kLingering,   ///< no worker is left; what they left behind has the rest of the grace
    kBackingOff,  ///< nothing is left; the next attempt waits for its time
    kOver,        ///< nobody is waited for any more
  };

  Phase phase = Phase::kRunning;
  int running = 0;  ///< workers that have not ended, including those that are still to be started
  Duration grace{0};
  Duration settle{0};              ///< the moment after a worker's own error
  Duration settle_for_victims{0};  ///< the moment after the end of a likely victim
  Duration settle_at_start{0};     ///< the moment after an error while the workers start; `settle` if that is longer
  bool looks = false;              ///< somebody can look where workers are before they are told to end
  int succeeded = 0;               ///< workers that ended with 0
  bool only_victims = true;        ///< who failed so far, here or elsewhere, looks like a victim of another
  int stop_signal = 0;             ///< what workers are to be told to end by, while somebody looks
  RunEnd end;                      ///< why it stops; kSucceeded while nothing is wrong
  bool suspended = false;
  bool asked = false;     ///< a forwarded signal has asked for the end
  bool unwanted = false;  ///< somebody wants the run to end: no attempt may follow

  bool operator==(const SupervisionState&) const = default;
};

/// What can happen to a run.
struct WorkerEnded {
  bool success = true;
  bool victim = false;    ///< it looks as if it failed because another one had
  bool starting = false;  ///< it failed in its first second
};
/// The run has begun to stop, and these workers, which were still to be started, never will be.
struct StartCalledOff {
  int workers = 0;
};
struct SettleExpired {};
/// `forwarded`: sent to lrun, and passed on by its guard. Whoever signals both processes (a service manager, a Slurm
/// step, killall) is heard twice: what came directly may begin a stop and never hurries one.
struct SignalArrived {
  int signal_number = 0;
  bool forwarded = true;
  bool named = false;      ///< by --signals-to-handle: USR1 and USR2 then end the run
  bool may_hurry = true;   ///< false of a TERM that the cluster's manager only repeats
  bool by_head = false;    ///< it came to the lrun that the user typed, which passed it on to all nodes
  bool head_lost = false;  ///< it stands for the end of the connection to that lrun

  /// Why a run ends that it ends.
  [[nodiscard]] RunEnd end() const;
};
struct GraceExpired {};
struct ConsoleClosed {};
struct StopRequested {};
struct GuardDied {};
struct KillExpired {};  ///< some do not even end when killed: the kernel does not let them
/// A time that the run had is over; `end` says which.
struct TimeIsOver {
  RunEnd end;
  bool may_restart = false;  ///< another attempt may do better
};
/// Another node of the job stops, or is lost: so do we. `end` says where and why.
struct StoppedElsewhere {
  RunEnd end;
  bool victim = false;  ///< where a worker failed there: it looks as if it failed because another one had
};
/// Where the workers are is known, as far as it can be.
struct LookedAtWorkers {};
/// The attempt failed and is over; another one is to follow it.
struct RestartPlanned {
  Duration delay{0};
};
struct BackoffExpired {};
/// Everything that had happened when the backoff expired has been told, and nothing called the start off.
struct StartConfirmed {};
using Event = std::variant<WorkerEnded, StartCalledOff, SettleExpired, SignalArrived, GraceExpired, ConsoleClosed,
                           StopRequested, GuardDied, KillExpired, TimeIsOver, StoppedElsewhere, LookedAtWorkers,
                           RestartPlanned, BackoffExpired, StartConfirmed>;

/// What is then to be done, in this order.
struct Announce {};       ///< say on the console why the run stops
struct LookAtWorkers {};  ///< tell LookedAtWorkers soon, also when nothing can be seen
struct StopWorkers {
  int signal_number = 0;
  bool whole_groups = false;  ///< not the leaders alone
};
struct ArmSettle {
  Duration settle{0};
};
struct PassOn {
  int signal_number = 0;  ///< the workers' own business: USR1, USR2
};
struct ArmGrace {
  Duration grace{0};
};
struct KillGroups {};
struct GiveUp {};   ///< whoever is left is lost, and waited for no more
struct Suspend {};  ///< stop all workers and all clocks (Ctrl-Z)
struct Resume {};
struct Finish {};  ///< the run is over as soon as nobody who is waited for is left, and all output was taken over
struct ArmBackoff {
  Duration delay{0};
};
struct ConfirmStart {};  ///< tell StartConfirmed once everything that has happened by now was told
struct StartAgain {};
using Action = std::variant<Announce, LookAtWorkers, ArmSettle, StopWorkers, PassOn, ArmGrace, KillGroups, GiveUp,
                            Suspend, Resume, Finish, ArmBackoff, ConfirmStart, StartAgain>;

struct Decision {
  SupervisionState state;
  std::vector<Action> actions;
};

/// The one stopping procedure, as a pure function: the signal lrun received (TERM for a failure) to each worker itself
/// (INT, QUIT and HUP to its process group, as a terminal sends them: a shell in between would swallow them),
/// one grace, then KILL to every group; a second INT, TERM or QUIT, a first INT after a failure, or a grace of zero
/// skips the wait. What an ended worker left in its group has the rest of the same grace, and the same hurries it.
/// Before it, where the first death is a likely victim's, the others have a moment to end with an error of their own;
/// the first such error ends the moment. Where somebody may have waited in vain (a limit is over, only victims have
/// failed, a worker had ended with 0 when a person stopped the run) somebody looks where the workers are before they
/// are told to end. Whatever ended the run first stays its reason.
///
/// Between two attempts there is nobody to stop: whatever asks for the end then ends the run at once, until the very
/// decision to start again.
Decision decide(const SupervisionState& state, const Event& event);

}  // namespace lrun::inline core
