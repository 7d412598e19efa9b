#include "runtime/dp/replica_connection.h"

#include <lrun/error.h>

#include <algorithm>

#include "runtime/collectives/bootstrap/group_options.h"

namespace lrun::detail {

bool are_for_nccl(const std::vector<at::Device>& devices, const std::string& backend) {
  const bool is_asked_for = backend == "nccl";
  if (devices.size() < 2 || !(is_asked_for || backend.empty() || backend == "auto")) return false;
  if (!std::ranges::all_of(devices, [](const at::Device& device) { return device.is_cuda(); })) return false;
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    if (std::find(devices.begin(), device, *device) == device) continue;
    if (!is_asked_for) return false;
    throw Unsupported("backend 'nccl' connects replicas with a GPU each, and " + device->str() +
                      " has several: give each its own, or use backend 'auto'");
  }
  return true;
}

ReplicaConnection connect_replicas(const std::vector<at::Device>& devices, const std::string& backend,
                                   std::chrono::milliseconds timeout, const ReplicaLinkMaker& make) {
  if (!are_for_nccl(devices, backend)) return {};
  try {
    return {std::make_unique<ReplicaGroup>(devices, make(devices), std::min(timeout, kLongestTimeout)), std::nullopt};
  } catch (const CollectiveTimeout&) {
    throw;
  } catch (const Error& error) {
    if (backend == "nccl") throw;
    return {nullptr,
            "replicas exchange parameters and gradients by copies between the GPUs, which is slower than NCCL: " +
                std::string(error.what())};
  }
}

}  // namespace lrun::detail
