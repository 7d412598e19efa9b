#pragma once

#include <c10/core/Device.h>
#include <lrun/collectives.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/common/call.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/replica_link.h"

namespace lrun::detail {

/// The services of liblrun for a group of liblrun_cuda.so: everything that needs the store or other processes.
struct CudaGroup {
  GroupOptions options;
  /// Waits for all ranks, once. \param bus_id  of this rank's GPU. \return  rank 0's `text`, on all ranks.
  /// \throws Unsupported  on all ranks: some share a GPU. \throws as GroupRendezvous.
  std::function<std::string(const std::string& text, const std::string& bus_id)> share;
  /// The first of the other ranks that has ended on this host, as messages name it. After share().
  std::function<std::optional<std::string>()> ended_peer;
  /// Publishes the reason of a failure to all ranks, best effort; and reads the reason that another rank has published.
  /// After share(); one at a time; throw nothing.
  std::function<void(const std::string& failure)> tell;
  std::function<std::optional<std::string>()> heard;
  /// Remembers a call, in the order of sequence numbers from 1. Before share(), too; throws nothing, never waits.
  std::function<void(const Call& call)> note;
  /// Nothing has moved for a while: compares the ranks' calls. \return  the difference, if there is one. As tell().
  std::function<std::optional<Failure>()> compare;
  /// Why a call has not ended in time. As tell().
  std::function<Failure(std::uint64_t sequence)> explain;
};

/// The seam to liblrun_cuda.so, which holds everything that touches CUDA and NCCL: a CPU program neither links nor
/// loads them. The library defines a C function under kCudaEntryPoint, of this type; both are of one build.
///
/// \return  the group, owned by the caller. \throws lrun::Unsupported  no GPU, or no CUDA side of LibTorch.
///          \throws as make_collectives().
using CudaEntryPoint = Collectives* (*)(const CudaGroup* group);
inline constexpr char kCudaEntryPoint[] = "lrun_cuda_make_collectives_v4";
inline constexpr char kCudaLibrary[] = "liblrun_cuda.so";

/// The same for replicas of one process. \throws lrun::Error  as ReplicaLink.
using ReplicaLinkEntryPoint = ReplicaLink* (*)(const std::vector<at::Device>* devices);
inline constexpr char kReplicaLinkEntryPoint[] = "lrun_cuda_make_replica_link_v1";

/// Opens the library from the folder of liblrun (or where the loader looks) and makes the group with it.
/// \throws Unsupported  the library is missing or does not load; the text names it and the alternative.
/// \throws Error        it cannot make the group.
std::unique_ptr<Collectives> make_with_cuda(const GroupOptions& options);
std::unique_ptr<ReplicaLink> make_replica_link(const std::vector<at::Device>& devices);

}  // namespace lrun::detail
