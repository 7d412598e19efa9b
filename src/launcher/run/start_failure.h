#pragma once

#include <string>

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "rendezvous/join_record.h"
#include "report/message_sink.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// What the other launchers of a job are told of a node that cannot start its workers; sent with `record`.
/// \param verdict  what this lrun ends with
/// \param why      in words, for a job that goes on without the node
void describe_failure(const Verdict& verdict, const std::string& why, JoinRecord& record);

/// What such a description came to on another node: the same cause and code. Empty for what makes no sense.
Verdict failure_of_another_node(const std::string& report);

/// Tells the others of this node's job, so that none waits for it: joins their meeting, or holds it where that is this
/// node's part, for as long as they may take to come, at most some seconds. Whatever keeps it from that is let be. For
/// before anything is started, with nobody's signals blocked.
/// \param record  described
void tell_failure(const LaunchPlan& plan, const JoinRecord& record, const Environment& environment, MessageSink& sink);

}  // namespace lrun::launcher
