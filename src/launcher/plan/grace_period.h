#pragma once

#include "base/duration.h"
#include "base/environment.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The time between SIGTERM and SIGKILL of a run's workers: that of the option, else that of the variable from which
/// torchrun reads it, else the request's default. core/stop/policy says when it begins, and what shortens it.
/// \throws UserError  the variable holds no time.
Setting<Duration> choose_grace_period(const LaunchRequest& request, const Environment& environment);

}  // namespace lrun::launcher
