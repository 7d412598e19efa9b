#pragma once

#include <string>

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "plan/worker_environment.h"
#include "rendezvous/membership.h"

namespace lrun::launcher {

/// Adds the facts about the job's nodes and this host's network that Horovod's ranks need. Reads the interfaces of this
/// host. Where each rank has a launcher, the nodes come from the plan, since the membership lists ranks.
void add_horovod_facts(const LaunchPlan& plan, const Membership& membership, RunFacts& facts);

/// A warning about why the ranks may not reach each other; empty when nothing is wrong.
/// \param environment  of the workers
std::string horovod_network_problem(const Membership& membership, const Environment& environment);

}  // namespace lrun::launcher
