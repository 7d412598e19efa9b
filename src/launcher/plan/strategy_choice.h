#pragma once

#include <optional>

#include "cluster/program_facts.h"
#include "plan/launch_request.h"
#include "plan/setting.h"
#include "plan/strategy.h"

namespace lrun::launcher {

/// The strategy of a run: the one that was asked for, else 'ddp' for more than one device or node and 'single' for one.
/// \param devices_per_node  the largest count of any node
Setting<Strategy> choose_strategy(const Setting<std::optional<Strategy>>& asked, int devices_per_node, int num_nodes);

/// \throws UserError  `strategy` needs liblrun, and PROGRAM is a Python program without --liblrun.
void check_program(const Setting<Strategy>& strategy, const LaunchRequest& request, const ProgramFacts& program);

}  // namespace lrun::launcher
