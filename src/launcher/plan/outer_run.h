#pragma once

#include <string>

#include "base/environment.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The warning about an lrun that a worker of another run has started: the run has several, of which each that does so
/// has a world apart. Rank 0 says it for all of them. Empty: it is none, it is alone in its run, or --nested says that
/// it is meant. `environment` is that of the workers to be.
std::string warn_about_outer_run(const LaunchRequest& request, const Environment& environment);

}  // namespace lrun::launcher
