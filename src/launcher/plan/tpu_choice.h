#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/allocation.h"
#include "plan/device_choice.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The request with strategy and accelerator settled: each of 'tpu' implies the other. Under strategy 'tpu'
/// '--accelerator cpu', or PJRT_DEVICE=CPU without that option, takes torch_xla's CPU device instead.
/// \throws UserError  another strategy on TPUs, or TPUs and GPUs
LaunchRequest with_tpu_settled(LaunchRequest request, const Environment& environment);

/// The chips of one node, one for each worker: the first N, those of a list, or all. A chip of TPU v2 or v3 has two
/// cores, and its worker drives both. On a node without a TPU a dry run takes the chips that were asked for. \throws
/// UserError  the node has no TPU, or not these chips
std::vector<DeviceId> choose_tpu_chips(const Setting<DeviceRequest>& asked, const AllocatedNode& node, bool dry_run);

/// The chips of a run fit together. On one node they form a mesh: 1, 2, 4 or 8 adjacent ones. Several nodes are a pod,
/// in which all chips are used. Other devices pass. \throws UserError  they do not
void check_tpu_mesh(const std::vector<AllocatedNode>& nodes, const std::vector<DeviceChoice>& choices);

/// The size of a host's mesh in its three directions, for one chip per process: '2,4,1' for 8. Empty: there is no such
/// mesh.
std::string tpu_process_bounds(std::size_t chips);

}  // namespace lrun::launcher
