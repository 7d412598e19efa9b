// In: parameters that their owners have updated. Out: the same on all ranks. Called by OptimizerShards.
#include "runtime/ddp/shard_exchange.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>

namespace lrun::detail {
namespace {

/// Tensors above this size are broadcast as they are; smaller ones are packed together up to it. Packing costs two more
/// copies, a broadcast of its own some ten microseconds.
constexpr std::int64_t kPackedBytes = std::int64_t{1} << 20;

/// Of the memory in which the parts of all ranks meet.
constexpr std::int64_t kGatheredBytes = std::int64_t{16} << 20;

bool can_be_cut(const at::Tensor& tensor) { return tensor.device().is_cpu() && tensor.is_contiguous(); }

std::int64_t bytes_together(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

/// Calls `use` with each part of the bytes [begin, begin + size) of tensors that lie one behind the other, and with its
/// place among these bytes.
void for_each_part(const std::vector<at::Tensor>& tensors, std::int64_t begin, std::int64_t size,
                   const std::function<void(at::Tensor part, std::int64_t place)>& use) {
  std::int64_t at = 0;
  for (const auto& tensor : tensors) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    const std::int64_t first = std::max(begin, at);
    const std::int64_t last = std::min(begin + size, at + bytes);
    if (first < last) {
      use(tensor.variable_data().view(-1).view(at::kByte).narrow(0, first - at, last - first), first - begin);
    }
    at += bytes;
  }
}

}  // namespace

ShardExchange::ShardExchange(const std::vector<std::vector<at::Tensor>>& shards, bool at_once)
    : gathered_(shards.size()) {
  std::vector<std::int64_t> bytes;
  for (const auto& shard : shards) {
    std::vector<at::Tensor> cut;
    std::ranges::copy_if(shard, std::back_inserter(cut), can_be_cut);
    bytes.push_back(bytes_together(cut));
  }
  // A rank with much more than the others would send it to each of them, where in a broadcast they pass it on.
  const std::int64_t common = at_once ? *std::ranges::min_element(bytes) : 0;
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    std::vector<at::Tensor> rest;
    std::int64_t room = common;
    for (const auto& tensor : shards[rank]) {
      const auto size = static_cast<std::int64_t>(tensor.nbytes());
      const bool fits = can_be_cut(tensor) && size <= room;
      (fits ? gathered_[rank] : rest).push_back(tensor);
      if (fits) room -= size;
    }
    broadcast_.emplace_back(rest, kPackedBytes);
  }
}

void ShardExchange::run(Collectives& collectives) {
  if (collectives.world_size() == 1) return;
  gather(collectives);
  for (std::size_t rank = 0; rank < broadcast_.size(); ++rank) {
    broadcast_[rank].run(collectives, static_cast<int>(rank));
  }
}

void ShardExchange::gather(Collectives& collectives) const {
  const at::NoGradGuard no_grad;
  const int world_size = collectives.world_size();
  std::int64_t longest = 0;
  for (const auto& tensors : gathered_) longest = std::max(longest, bytes_together(tensors));
  const std::int64_t most = std::min(longest, std::max<std::int64_t>(1, kGatheredBytes / world_size));
  const at::Tensor memory = at::empty({world_size * most}, at::kByte);
  for (std::int64_t begin = 0; begin < longest; begin += most) {
    const std::int64_t size = std::min(most, longest - begin);
    const at::Tensor rows = memory.narrow(0, 0, world_size * size).view({world_size, size});
    const at::Tensor mine = rows[collectives.rank()];
    for_each_part(gathered_[static_cast<std::size_t>(collectives.rank())], begin, size,
                  [&](const at::Tensor& part, std::int64_t place) { mine.narrow(0, place, part.numel()).copy_(part); });
    collectives.all_gather(rows, mine);
    for (int rank = 0; rank < world_size; ++rank) {
      if (rank == collectives.rank()) continue;
      for_each_part(gathered_[static_cast<std::size_t>(rank)], begin, size, [&](at::Tensor part, std::int64_t place) {
        part.copy_(rows[rank].narrow(0, place, part.numel()));
      });
    }
  }
}

}  // namespace lrun::detail
