#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "plan/device_choice.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// Strategy 'tpu' and accelerator 'tpu' mean each other: the request with both settled. Under the strategy
/// '--accelerator cpu', or PJRT_DEVICE=CPU where nothing is said, takes torch_xla's CPU device instead.
/// \throws UserError  another strategy on TPUs, or TPUs and GPUs.
LaunchRequest with_tpu_settled(LaunchRequest request, const Environment& environment);

/// The chips of one node, one for each worker: the first N, those of a list, or all. On one node they form a mesh, so
/// they are 1, 2, 4 or 8 that follow each other. A chip of TPU v2 or v3 has two cores, which its worker both drives.
/// A dry run takes what is asked for where the node has no TPU.
/// \throws UserError  there are none, or not these.
std::vector<DeviceId> choose_tpu_chips(const Setting<DeviceRequest>& asked, const AllocatedNode& node, bool dry_run);

/// On several nodes, which are a pod, workers use all chips of each.
/// \throws UserError  some would not be used, or one node has too many for its mesh.
void check_tpu_mesh(const std::vector<AllocatedNode>& nodes, const std::vector<DeviceChoice>& choices);

/// How many processes of one chip lie beside each other in the three directions of a host's mesh: '2,4,1' for 8.
/// \return empty: there is no mesh of so many.
std::string tpu_process_bounds(std::size_t chips);

}  // namespace lrun::launcher
