#pragma once

#include <variant>
#include <vector>

#include "base/duration.h"
#include "verdict/judge.h"

namespace lrun::inline core {

/// The supervisor's knowledge when it decides.
struct SupervisionState {
  enum class Phase {
    kRunning,     ///< workers work
    kSettling,    ///< one failed; the others have a moment to report why before they are stopped
    kLooking,     ///< to be stopped; their stacks are sampled before
    kStopping,    ///< signalled to end; the grace period runs
    kKilling,     ///< killed; only their deaths are awaited
    kLingering,   ///< no worker is left; processes that they left have the rest of the grace period
    kBackingOff,  ///< no process is left; the next attempt waits for its time
    kOver,        ///< there is nothing left to wait for
  };

  Phase phase = Phase::kRunning;
  int running = 0;  ///< workers that have not ended, including those that are still to be started
  Duration grace{0};
  Duration settle{0};              ///< the moment after a worker's own error
  Duration settle_for_victims{0};  ///< the moment after the end of a likely victim
  Duration settle_at_start{0};     ///< the moment after an error while the workers start; `settle` if that is longer
  bool looks = false;              ///< the workers' stacks can be sampled before they are signalled to end
  int succeeded = 0;               ///< workers that ended with 0
  bool only_victims = true;        ///< every failed worker so far, here or elsewhere, looks like a victim of another
  int stop_signal = 0;             ///< the signal that follows kLooking
  RunEnd end;                      ///< why it stops; kSucceeded while nothing is wrong
  bool suspended = false;
  bool quiet = false;     ///< no worker had printed anything for a while when the signal came that ends the run
  bool asked = false;     ///< a forwarded signal has asked for the end
  bool unwanted = false;  ///< the run was asked to end: no attempt may follow

  bool operator==(const SupervisionState&) const = default;
};

/// Events of a run.
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
/// `forwarded`: sent to lrun, and passed on by its guard. A service manager, a Slurm step or killall signals both
/// processes, so one signal comes twice: the copy that came directly may begin a stop, and never hurries one.
struct SignalArrived {
  int signal_number = 0;
  bool forwarded = true;
  bool named = false;      ///< by --signals-to-handle: USR1 and USR2 then end the run
  bool may_hurry = true;   ///< false of a TERM that the cluster's manager only repeats
  bool by_head = false;    ///< sent to the lrun that the user typed, which passed it on to all nodes
  bool head_lost = false;  ///< it stands for the end of the connection to that lrun
  bool in_quiet = false;   ///< no worker had printed anything for a while

  /// The reason of a run that this signal ends.
  [[nodiscard]] RunEnd end() const;
};
struct GraceExpired {};
struct ConsoleClosed {};
struct StopRequested {};
struct GuardDied {};
struct KillExpired {};  ///< the kernel does not let some killed workers end
/// A limit that the user has set is reached, or this machine is about to go; `end` has which one.
struct TimeIsOver {
  RunEnd end;
  bool may_restart = false;  ///< another attempt may do better
  Duration moment{0};        ///< in which workers may still fail by themselves, which then is why the run stops
};
/// Another node of the job stops or is lost, so this node stops, too. `end` has where and why.
struct StoppedElsewhere {
  RunEnd end;
  bool victim = false;  ///< where a worker failed there: it looks as if it failed because another one had
};
/// The workers' stacks were sampled, as far as possible.
struct LookedAtWorkers {};
/// The attempt failed and is over; another one is to follow it.
struct RestartPlanned {
  Duration delay{0};
};
struct BackoffExpired {};
/// All events from before the end of the backoff were handled, and none called the start off.
struct StartConfirmed {};
using Event = std::variant<WorkerEnded, StartCalledOff, SettleExpired, SignalArrived, GraceExpired, ConsoleClosed,
                           StopRequested, GuardDied, KillExpired, TimeIsOver, StoppedElsewhere, LookedAtWorkers,
                           RestartPlanned, BackoffExpired, StartConfirmed>;

/// Actions of a decision, to be carried out in their order.
struct Announce {};       ///< print why the run stops
struct LookAtWorkers {};  ///< report LookedAtWorkers soon, also when nothing can be sampled
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
struct GiveUp {};   ///< record the workers that are left as lost, and wait for them no longer
struct Suspend {};  ///< stop all workers and all clocks (Ctrl-Z)
struct Resume {};
struct Finish {};  ///< the run is over as soon as no worker is left to wait for, and all output was read
struct ArmBackoff {
  Duration delay{0};
};
struct ConfirmStart {};  ///< report StartConfirmed once all events that are ready now were handled
struct StartAgain {};
using Action = std::variant<Announce, LookAtWorkers, ArmSettle, StopWorkers, PassOn, ArmGrace, KillGroups, GiveUp,
                            Suspend, Resume, Finish, ArmBackoff, ConfirmStart, StartAgain>;

struct Decision {
  SupervisionState state;
  std::vector<Action> actions;
};

/// The one stopping procedure, as a pure function: the signal lrun received (TERM for a failure) to each worker itself
/// (INT, QUIT and HUP to its process group, as a terminal sends them: a shell in between would swallow them),
/// one grace period, then KILL to every group; a second INT, TERM or QUIT, a first INT after a failure, or a grace
/// period of zero skips the wait. Processes that an ended worker left in its group have the rest of the same grace
/// period. Where the first death is a likely victim's, the others first have a moment to end with an error of their
/// own; the first such error ends the moment. Where workers may have waited in vain (a limit is over, only victims have
/// failed, a worker had ended with 0 when a user stopped the run, or none had printed anything for a while) their
/// stacks are sampled before they are signalled. The first event that ends the run stays its reason.
///
/// Between two attempts there is no worker to stop: a request for the end then ends the run at once, until the very
/// decision to start again.
Decision decide(const SupervisionState& state, const Event& event);

}  // namespace lrun::inline core
