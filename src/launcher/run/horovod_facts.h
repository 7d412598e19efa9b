#pragma once

#include <string>

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "plan/worker_environment.h"
#include "rendezvous/membership.h"

namespace lrun::launcher {

/// What Horovod's ranks have to know of the nodes of a job, and of this one's network. Looks at the interfaces of this
/// host. Where each rank has a launcher, the plan knows the nodes, and the membership does not.
void add_horovod_facts(const LaunchPlan& plan, const Membership& membership, RunFacts& facts);

/// Why they may not reach each other, as a warning; empty when nothing is wrong.
/// \param environment  of the workers
std::string horovod_network_problem(const Membership& membership, const Environment& environment);

}  // namespace lrun::launcher
