#pragma once

#include <string>
#include <string_view>

#include "cluster/program_facts.h"
#include "plan/launch_request.h"
#include "plan/setting.h"

namespace lrun::launcher {

/// Of programs written for Horovod.
inline constexpr std::string_view kHorovodStrategy = "horovod";

/// The strategy of a run: what was asked, else 'ddp' for more than one device or node and 'single' for one.
/// `devices_per_node` is the largest count of any node.
/// \throws UserError  a name that nobody knows (with the nearest one), that this version does not have, or 'single'
///                    for more than one device.
Setting<std::string> choose_strategy(const Setting<std::string>& asked, int devices_per_node, int num_nodes);

/// True of those whose work liblrun does, inside of the program: under lrun alone the program has devices that it knows
/// nothing of, or an optimizer that is not sharded.
bool needs_liblrun(std::string_view strategy);

/// How a program without liblrun trains under a strategy that needs it: 'on one device'.
std::string way_without_liblrun(std::string_view strategy);

/// \throws UserError  `strategy` needs liblrun, and PROGRAM is a Python program of which nobody says that it has it.
void check_program(const Setting<std::string>& strategy, const LaunchRequest& request, const ProgramFacts& program);

/// True of those under which lrun starts one process a node, and that process the ranks of the node (lrun::launch).
bool starts_ranks_from_within(std::string_view strategy);

}  // namespace lrun::launcher
