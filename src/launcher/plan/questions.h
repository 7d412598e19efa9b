#pragma once

#include "base/environment.h"
#include "cluster/allocation.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The facts of this machine on which the plan of `request` can depend. Nothing else has to be looked at.
Questions questions_of(const LaunchRequest& request, const Environment& environment);

}  // namespace lrun::launcher
