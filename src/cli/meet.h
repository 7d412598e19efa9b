#pragma once

#include <optional>
#include <string>

#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "rendezvous/job.h"

namespace lrun {

/// What a launcher that is to meet others came to.
struct MeetingEnd {
  std::optional<Membership> membership;  ///< the job begins
  std::string why_not;                   ///< else, in words; empty when somebody stopped lrun
  int signal_number = 0;                 ///< that somebody sent

  bool operator==(const MeetingEnd&) const = default;
};

/// What this node says about itself to the other launchers.
/// \throws UserError  --local-addr cannot be resolved.
JoinRecord join_record_of(const LaunchPlan& plan);

/// Runs the loop until the job begins, fails, or a signal asks for the end. Says on stderr who is missing.
MeetingEnd meet(EventLoop& loop, Job& job, const LaunchPlan& plan, const Guard& guard);

/// This node is done with the job. Where the meeting is held here, runs the loop until the other nodes are done, too,
/// or a signal asks for the end; after a while it says on stderr what lrun waits for.
void leave(EventLoop& loop, Job& job, const LaunchPlan& plan, const Guard& guard);

}  // namespace lrun
