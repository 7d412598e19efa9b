#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/allocation.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The devices of one node and their consequences.
struct DeviceChoice {
  std::vector<DeviceId> devices;               ///< never empty, all of one kind
  Setting<DeviceKind> accelerator;             ///< of all of them
  Setting<DeviceRequest> asked;                ///< the setting that decided; not given: the default, one device
  std::optional<std::string> visible_devices;  ///< for all workers of the node; empty: the variable is left alone
  GpuVendor gpu_vendor = GpuVendor::kNvidia;   ///< decides which variable that is
  bool is_own = false;                         ///< other launchers on this node see other devices
  std::vector<std::string> warnings;

  bool operator==(const DeviceChoice&) const = default;
};

/// '--accelerator cuda'.
std::string accelerator_as_written(const LaunchRequest& request);

/// The GPU is neither lost nor closed by its administrator.
bool is_usable(const Gpu& gpu);

/// Chooses devices of `node` by --devices, --nproc-per-node and --accelerator:
///
/// --devices          'auto': all GPUs, else one CPU rank · '-1': all GPUs · '2,3': these GPUs, counted as programs see
///                    them (or UUIDs) · '8': the first eight GPUs, on a machine without GPUs eight CPU ranks
/// --nproc-per-node   'auto': all GPUs, else a rank per CPU · 'gpu' · 'cpu': a rank per CPU · a number, as in torchrun:
///                    a number above that of the GPUs gives CPU ranks, with a warning
/// neither            one device
///
/// A GPU that is lost or that its administrator has closed is never chosen. A busy GPU is refused where GPUs were asked
/// for, and causes a warning where only processes were counted; with --share-gpus it is taken unless it is in exclusive
/// mode. An instance of a GPU in MIG mode is a device like a GPU. Under accelerator 'tpu' devices are chips: see
/// choose_tpu_chips().
/// \throws UserError  contradictory, more than the node has, or busy
DeviceChoice choose_devices(const LaunchRequest& request, const AllocatedNode& node);

}  // namespace lrun::launcher
