#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/dp/replica_group.h"

namespace lrun::detail {

/// The connection of the replicas.
struct ReplicaConnection {
  std::unique_ptr<ReplicaGroup> group;  ///< Null: by copies between the devices.
  std::optional<std::string> warning;   ///< The reason why NCCL is not used although it was to be expected.
};

/// Whether replicas on these devices are for NCCL: GPUs of CUDA, one replica each, and no other backend asked for.
/// \throws lrun::Unsupported  'nccl' was asked for, and replicas share a GPU.
bool are_for_nccl(const std::vector<at::Device>& devices, const std::string& backend);

using ReplicaLinkMaker = std::function<std::unique_ptr<ReplicaLink>(const std::vector<at::Device>& devices)>;

/// Connects replicas through NCCL where that is possible.
/// \param backend  the requested one; empty or 'auto': none.
/// \param make     make_replica_link(), or a test's substitute.
/// \throws lrun::Error              'nccl' was requested and is missing or fails; otherwise that is the warning.
/// \throws lrun::CollectiveTimeout  the devices did not connect in time.
ReplicaConnection connect_replicas(const std::vector<at::Device>& devices, const std::string& backend,
                                   std::chrono::milliseconds timeout, const ReplicaLinkMaker& make);

}  // namespace lrun::detail
