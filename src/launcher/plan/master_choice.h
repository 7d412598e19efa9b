#pragma once

#include "base/environment.h"
#include "cluster/allocation.h"

namespace lrun::launcher {

struct LaunchPlan;
struct LaunchRequest;

/// Decides where the workers' store is, and for several nodes how their launchers meet.
/// \throws UserError  an address of a run of one node is another machine's; the backend needs a port; there is no such
///                    node rank
void choose_master(const LaunchRequest& request, const AllocatedNode& this_host, LaunchPlan& plan);

/// A plan for several nodes can be shown without an endpoint, but not run.
/// \throws UserError  there is none
void require_endpoint(const LaunchPlan& plan, const LaunchRequest& request, const Environment& environment);

}  // namespace lrun::launcher
