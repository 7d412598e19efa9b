#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/allocation.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The devices of one node and what follows from them.
struct DeviceChoice {
  std::vector<DeviceId> devices;               ///< never empty, all of one kind
  Setting<DeviceKind> accelerator;             ///< of all of them
  Setting<DeviceRequest> asked;                ///< the setting that decided; not given: the default, one device
  std::optional<std::string> visible_devices;  ///< what all workers of the node must see; empty: leave it alone
  GpuVendor gpu_vendor = GpuVendor::kNvidia;   ///< whose variable that is
  bool is_own = false;                         ///< of one launcher of several on the node, which see others
  std::vector<std::string> warnings;

  bool operator==(const DeviceChoice&) const = default;
};

/// Neither lost nor closed by its administrator.
bool is_usable(const Gpu& gpu);

/// Chooses from what `node` has, by --devices, --nproc-per-node and --accelerator:
///
/// --devices          'auto': all GPUs, else one CPU rank · '-1': all GPUs · '2,3': these GPUs, counted as programs see
///                    them (or UUIDs) · '8': the first eight GPUs, on a machine without GPUs eight CPU ranks
/// --nproc-per-node   'auto': all GPUs, else a rank a CPU · 'gpu' · 'cpu': a rank a CPU · a number, as torchrun: more
///                    than there are GPUs makes them CPU ranks, with a warning
/// neither            one device
///
/// A GPU that is lost or that its administrator has closed is never chosen. GPUs that others compute on are refused
/// where GPUs were asked for (not with --share-gpus, except when they are in exclusive mode), and are a warning where
/// only processes were counted. An instance of a GPU in MIG mode is a device like a GPU. \throws UserError  unreadable,
/// contradictory, more than the node has, or busy.
///
/// With accelerator 'tpu' devices are chips: see choose_tpu_chips().
DeviceChoice choose_devices(const LaunchRequest& request, const AllocatedNode& node);

}  // namespace lrun::launcher
