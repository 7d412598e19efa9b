// The parts of <lrun/collectives.h> that all groups share: errors, all_to_all out of other operations, and the
// agreement on the ranks of a subgroup.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <lrun/collectives.h>
#include <lrun/error.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/row_sizes.h"

namespace lrun {
namespace {

void require_members(const std::vector<int>& ranks, int world_size) {
  std::set<int> seen;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= world_size) {
      throw std::invalid_argument("subgroup: there is no rank " + std::to_string(rank) + " in a group of " +
                                  std::to_string(world_size));
    }
    if (!seen.insert(rank).second) {
      throw std::invalid_argument("subgroup: rank " + std::to_string(rank) + " is named twice");
    }
  }
}

std::vector<int> members_in(const at::Tensor& row) {
  std::vector<int> ranks;
  const auto numbers = row.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < numbers.size(0) && numbers[i] >= 0; ++i) ranks.push_back(static_cast<int>(numbers[i]));
  return ranks;
}

[[noreturn]] void refuse_members(const at::Tensor& all, int rank, int other) {
  const auto name = [&](int of) {
    const std::vector<int> members = members_in(all[of]);
    return members.empty() ? "no ranks" : detail::name_ranks(members);
  };
  throw CollectiveMismatch("subgroup: rank " + std::to_string(rank) + " names " + name(rank) + ", but rank " +
                           std::to_string(other) + " names " + name(other) +
                           ": name the same ones, in the same order, on every rank of the new group");
}

/// Row r of `all` has the members that rank r names, and -1 behind them. Members that name the same first one have
/// equal rows, because each row is equal to that of its first one.
void require_agreement(const at::Tensor& all) {
  const auto numbers = all.accessor<std::int64_t, 2>();
  for (std::int64_t rank = 0; rank < numbers.size(0); ++rank) {
    const std::int64_t first = numbers[rank][0];
    for (std::int64_t i = 0; i < numbers.size(1); ++i) {
      if (first >= 0 && numbers[first][i] != numbers[rank][i]) {
        refuse_members(all, static_cast<int>(rank), static_cast<int>(first));
      }
      const std::int64_t member = numbers[rank][i];
      if (member >= 0 && numbers[member][0] != first) {
        refuse_members(all, static_cast<int>(rank), static_cast<int>(member));
      }
    }
  }
}

void require_rows(const at::Tensor& output, const at::Tensor& input, int world_size) {
  for (const at::Tensor& tensor : {output, input}) {
    if (!tensor.defined()) throw std::invalid_argument("all_to_all: the tensor is undefined");
    if (tensor.layout() != at::kStrided || !tensor.is_contiguous()) {
      throw std::invalid_argument("all_to_all: the tensor is not contiguous");
    }
  }
  if (input.dim() < 1 || input.size(0) != world_size || output.sizes() != input.sizes() ||
      output.scalar_type() != input.scalar_type()) {
    throw std::invalid_argument("all_to_all: both tensors have to be (" + std::to_string(world_size) +
                                ", *shape) of one dtype");
  }
  if (input.nbytes() == 0 || input.device() != output.device()) return;
  const auto* from = static_cast<const std::byte*>(input.const_data_ptr());
  const auto* to = static_cast<const std::byte*>(output.const_data_ptr());
  if (from < to + output.nbytes() && to < from + input.nbytes()) {
    throw std::invalid_argument("all_to_all: the tensors share memory");
  }
}

}  // namespace

// Out of line, so that each class has one vtable and one type_info, in liblrun: exceptions are caught by type.
CollectiveWork::~CollectiveWork() = default;
Collectives::~Collectives() = default;

Error::~Error() = default;
BadEnvironment::~BadEnvironment() = default;
Unsupported::~Unsupported() = default;
CollectiveTimeout::~CollectiveTimeout() = default;
PeerLost::~PeerLost() = default;
CollectiveMismatch::~CollectiveMismatch() = default;
RankMismatch::~RankMismatch() = default;
CheckpointError::~CheckpointError() = default;
WorkersFailed::~WorkersFailed() = default;
ReplicaFailed::~ReplicaFailed() = default;

std::unique_ptr<CollectiveWork> Collectives::all_reduce(at::Tensor tensor, ReduceOp op) {
  return all_reduce(std::move(tensor), op, 0);
}

void Collectives::all_to_all(at::Tensor output, const at::Tensor& input) {
  require_rows(output, input, world_size());
  move_rows(std::move(output), input, detail::RowSizes::equal(world_size(), input.sizes().slice(1)));
}

void Collectives::move_rows(at::Tensor output, const at::Tensor& input, const detail::RowSizes& sizes) {
  const at::NoGradGuard no_grad;
  const at::Tensor mine = sizes.pad(input);
  const at::Tensor all = at::empty({world_size(), world_size(), mine.size(1)}, mine.options());
  all_gather(all, mine);
  sizes.take(output, all.select(1, rank()));
}

std::unique_ptr<Collectives> Collectives::subgroup(const std::vector<int>& ranks) {
  require_members(ranks, world_size());
  const at::Tensor mine = at::full({world_size()}, -1, at::kLong);
  std::ranges::copy(ranks, mine.mutable_data_ptr<std::int64_t>());
  const at::Tensor all = at::empty({world_size(), world_size()}, at::kLong);
  all_gather(all, mine);
  require_agreement(all);
  const std::uint64_t number = next_number();
  if (std::ranges::find(ranks, rank()) == ranks.end()) return nullptr;
  auto group = join_subgroup(ranks, number);
  group->devices_of_rank_ = devices_of_rank_;
  return group;
}

std::unique_ptr<Collectives> Collectives::join_subgroup(const std::vector<int>& /*ranks*/, std::uint64_t /*number*/) {
  throw Unsupported("backend '" + name() + "' has no subgroups: override join_subgroup(), or use a backend of lrun");
}

}  // namespace lrun
