#pragma once

#include <string>

#include "plan/launch_plan.h"
#include "report/verdict_text.h"
#include "supervise/restart_policy.h"

namespace lrun::launcher {

/// The line that is printed when another attempt follows a failed one: why, which restart of how many, and when. The
/// cause is left out when it was `said` before. Nodes without a failed worker print nothing else.
std::string restart_text(const Verdict& attempt, const RestartChoice& choice, const LaunchPlan& plan, bool said,
                         bool colour);

/// For the verdict of a run that was restarted `used` times: 'restarted 3 times, as often as allowed'; empty when
/// nothing is to be said.
std::string restarts_text(RestartChoice::Kind last, int used, const LaunchPlan& plan);

}  // namespace lrun::launcher
