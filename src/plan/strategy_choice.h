#pragma once

#include <string>

#include "plan/setting.h"

namespace lrun {

/// The strategy of a run: what was asked, else 'ddp' for more than one device or node and 'single' for one.
/// `devices_per_node` is the largest count of any node.
/// \throws UserError  a name that nobody knows (with the nearest one), that this version does not have, or 'single'
///                    for more than one device.
Setting<std::string> choose_strategy(const Setting<std::string>& asked, int devices_per_node, int num_nodes);

}  // namespace lrun
