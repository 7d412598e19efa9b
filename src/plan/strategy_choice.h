#pragma once

#include <string>
#include <string_view>

#include "plan/setting.h"

namespace lrun {

/// Of programs written for Horovod.
inline constexpr std::string_view kHorovodStrategy = "horovod";

/// The strategy of a run: what was asked, else 'ddp' for more than one device or node and 'single' for one.
/// `devices_per_node` is the largest count of any node.
/// \throws UserError  a name that nobody knows (with the nearest one), that this version does not have, or 'single'
///                    for more than one device.
Setting<std::string> choose_strategy(const Setting<std::string>& asked, int devices_per_node, int num_nodes);

/// True of those under which lrun starts one process a node, and that process the ranks of the node (lrun::launch).
bool starts_ranks_from_within(std::string_view strategy);

}  // namespace lrun
