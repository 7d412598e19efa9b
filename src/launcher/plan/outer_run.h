#pragma once

#include <string>

#include "base/environment.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The warning about an lrun that a worker of another run has started: each rank that does so gets a world of its own.
/// Rank 0 prints it for all of them. Empty: no worker started this lrun, the worker is alone in its run, or --nested
/// was given.
/// \param environment  of the workers to be
std::string warn_about_outer_run(const LaunchRequest& request, const Environment& environment);

}  // namespace lrun::launcher
