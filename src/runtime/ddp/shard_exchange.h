#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>

#include <vector>

#include "runtime/ddp/flat_broadcast.h"

namespace lrun::detail {

/// Sends the tensors of each rank to all others. A value of plans, as FlatBroadcast.
class ShardExchange {
 public:
  /// \param shards   the tensors of each rank, alike on all ranks and on one device; each tensor once.
  /// \param at_once  what every rank has about as much of goes in all_gathers, in which each rank sends while it
  ///                 receives: half the time of broadcasts one after the other on links between hosts, but one more
  ///                 copy of every byte. The rest, and tensors of GPUs, are broadcast.
  ShardExchange(const std::vector<std::vector<at::Tensor>>& shards, bool at_once);

  /// Overwrites the tensors of each shard with those of its rank. Collective.
  void run(Collectives& collectives);

 private:
  void gather(Collectives& collectives) const;

  std::vector<std::vector<at::Tensor>> gathered_;  // of each rank
  std::vector<FlatBroadcast> broadcast_;           // of each rank
};

}  // namespace lrun::detail
