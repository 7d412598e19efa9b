#pragma once

#include <string>

#include "base/environment.h"
#include "base/user_error.h"
#include "plan/launch_plan.h"
#include "rendezvous/join_record.h"
#include "report/message_sink.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// Adds to `record` why this node cannot start its workers, for the other launchers of the job.
/// \param verdict  of this lrun
/// \param why      that this node tells its user
void describe_failure(const Verdict& verdict, const UserError& why, JoinRecord& record);

/// The verdict of another node's description: the same cause and code. Empty if the report cannot be read.
Verdict failure_of_another_node(const std::string& report);

/// Reports the failure to the other nodes of the job, so that none waits for this one: joins their rendezvous, or leads
/// it where that is this node's part, for some seconds at most. Errors are ignored. To be called before anything is
/// started, with no signals blocked.
/// \param record  with describe_failure()
/// \return the leader of the job has the report
bool report_failure(const LaunchPlan& plan, const JoinRecord& record, const Environment& environment,
                    MessageSink& sink);

}  // namespace lrun::launcher
