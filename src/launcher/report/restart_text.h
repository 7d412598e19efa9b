#pragma once

#include <string>

#include "report/verdict_text.h"
#include "supervise/restart_policy.h"

namespace lrun::launcher {

/// The line said when a failed attempt is followed by another: why, which restart of how many, and when. The cause is
/// repeated only when it was not `said` when it was seen. On other nodes that is all there is to say.
std::string restart_text(const Verdict& attempt, const RestartChoice& choice, int most, bool said, bool colour);

/// For the verdict of a run that was restarted `used` times: 'restarted 3 times, as often as allowed'; empty when
/// nothing is to be said.
std::string restarts_text(RestartChoice::Kind last, int used);

}  // namespace lrun::launcher
