#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <lrun/all_gather_with_grad.h>
#include <lrun/evaluation.h>
#include <lrun/exchange.h>
#include <lrun/optimizer.h>

#include <string>
#include <vector>

#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {

/// Rank r's r + `more` rows of the number r.
inline at::Tensor rows_of_rank(int rank, std::int64_t more, const at::TensorOptions& options) {
  return at::full({rank + more, 2}, rank, options);
}

inline void move_tensors_of_any_size(Collectives& group, const at::TensorOptions& options) {
  const int world = group.world_size();
  const at::TensorOptions cpu = options.device(at::kCPU);
  const std::string where = options.device().str();
  const auto equal = all_gather(group, at::full({3}, group.rank(), options));
  const auto uneven = all_gather(group, rows_of_rank(group.rank(), 0, options));  // rank 0 has none
  const auto gathered = gather(group, rows_of_rank(group.rank(), 1, options), world - 1);
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < world; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    require_equal(equal.at(index).cpu(), at::full({3}, rank, cpu), "equal sizes on " + where);
    require(equal[index].storage().nbytes() == equal[index].nbytes(), "a tensor has its own memory");
    require_equal(uneven.at(index).cpu(), rows_of_rank(rank, 0, cpu), "other sizes on " + where);
    require(gathered.empty() == (group.rank() != world - 1), "one rank gathers");
    if (!gathered.empty()) require_equal(gathered.at(index).cpu(), rows_of_rank(rank, 1, cpu), "gathered on " + where);
    if (group.rank() == 0) parts.push_back(rows_of_rank(rank, 5, options));
  }
  const at::Tensor mine = scatter(group, parts, 0, options.device());
  require(mine.device().type() == options.device().type(), "scattered to " + mine.device().str());
  require_equal(mine.cpu(), rows_of_rank(group.rank(), 5, cpu), "scattered to " + where);
}

/// Rank r's to rank q: r + q rows of the number r.
inline void move_a_tensor_to_every_rank(Collectives& group, const at::TensorOptions& options) {
  std::vector<at::Tensor> parts;
  for (int to = 0; to < group.world_size(); ++to) parts.push_back(rows_of_rank(group.rank(), to, options));
  const auto mine = all_to_all(group, parts);
  for (int from = 0; from < group.world_size(); ++from) {
    const at::Tensor& part = mine.at(static_cast<std::size_t>(from));
    require(part.device().type() == options.device().type(), "moved to " + part.device().str());
    require_equal(part.cpu(), rows_of_rank(from, group.rank(), options.device(at::kCPU)), "moved to every rank");
  }
}

/// The root's tensor is read and never written, also where it travels through another device.
inline void broadcast_from_the_cpu(Collectives& group) {
  const int root = group.world_size() - 1;
  at::Tensor told = at::full({5}, group.rank(), at::kLong);
  const auto writes = told._version();
  group.broadcast(told, root);
  require_equal(told, at::full({5}, root, at::kLong), "a broadcast from the CPU");
  require(group.rank() != root || told._version() == writes, "the root's tensor was written");
}

inline void move_bytes(Collectives& group) {
  const auto text_of = [](int rank) { return std::string(static_cast<std::size_t>(1'000 * rank), 'x'); };
  const auto all = all_gather(group, text_of(group.rank()));
  for (int rank = 0; rank < group.world_size(); ++rank) {
    require(all.at(static_cast<std::size_t>(rank)) == text_of(rank), "bytes of rank " + std::to_string(rank));
    require(broadcast(group, text_of(group.rank()), rank) == text_of(rank), "told bytes of " + std::to_string(rank));
  }
}

/// Every rank's loss is r + 1 times the sum of all rows.
inline void gather_with_gradients(Collectives& group, const at::TensorOptions& options) {
  const int world = group.world_size();
  const at::TensorOptions cpu = options.device(at::kCPU);
  const at::Tensor mine = at::full({2, 3}, group.rank(), options).requires_grad_();
  const at::Tensor all = all_gather_with_grad(group, mine);
  all.backward(at::full({2 * world, 3}, group.rank() + 1, options));
  require_equal(all.detach().cpu(),
                at::arange(world, cpu).repeat_interleave(2).view({-1, 1}).expand({-1, 3}).contiguous(),
                "rows with gradients");
  require_equal(mine.grad().cpu(), at::full({2, 3}, world * (world + 1) / 2, cpu), "gradients of rows");
}

/// Samples 0, 1, 2, …, of which rank r has r, r + W, …, and rank W - 1 one less than the others.
inline void evaluate_in_order(Collectives& group, const at::TensorOptions& options) {
  const int world = group.world_size();
  const std::int64_t samples = 2 * world - 1;
  const at::Tensor mine = at::arange(group.rank(), samples, world, options.device(at::kCPU)).to(options.device());
  require_equal(all_gather_in_order(group, mine).cpu(), at::arange(samples, options.device(at::kCPU)), "all in order");
  const double mean = weighted_mean(group, group.rank(), group.rank() + 1);
  double sum = 0;
  double weights = 0;
  for (int rank = 0; rank < world; ++rank) sum += rank * (rank + 1), weights += rank + 1;
  require(mean == sum / weights, "the mean is " + std::to_string(mean));
}

/// The loss of an optimizer's closure is r on rank r.
inline void average_losses(Collectives& group, const at::TensorOptions& options) {
  const auto loss = [&] { return at::full({}, group.rank(), options); };
  require_equal(mean_loss(loss, &group, {.update = 1, .number = 1}).cpu(),
                at::full({}, (group.world_size() - 1) / 2.0, options.device(at::kCPU)), "the mean loss");
  if (group.world_size() == 1) return;
  const std::uint64_t number = group.rank() == 1 ? 3 : 2;
  const auto error = error_of([&] { static_cast<void>(mean_loss(loss, &group, {.update = 1, .number = number})); });
  require(
      error.find("CollectiveMismatch: step(closure): rank 0 is in evaluation 2 of update 1, but rank 1 in evaluation "
                 "3 of update 1") == 0,
      error);
}

/// Refuses as on CPUs, and goes on.
inline void refuse_what_differs(Collectives& group, const at::TensorOptions& options) {
  if (group.world_size() == 1) return;
  const auto refusal = error_of([&] {
    static_cast<void>(all_gather(group, at::full({2, group.rank() == 0 ? 3 : 4}, 1, options)));
  });
  require(refusal.find("CollectiveMismatch: all_gather: rank 0 has Float [2, 3], rank 1 has Float [2, 4]") == 0,
          refusal);
  const auto receivers = error_of([&] { static_cast<void>(gather(group, "", group.rank() == 0 ? 0 : 1)); });
  require(receivers.find("CollectiveMismatch: gather: rank 0 gathers on rank 0, rank 1 on rank 1") == 0, receivers);
}

/// All that is built on the operations of a group, with float32 tensors of a GPU and of the CPU.
inline void use_every_exchange(Collectives& group, at::Device gpu) {
  for (const at::Device device : {gpu, at::Device(at::kCPU)}) {
    const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(device);
    move_tensors_of_any_size(group, options);
    move_a_tensor_to_every_rank(group, options);
    gather_with_gradients(group, options);
    evaluate_in_order(group, options);
    average_losses(group, options);
    refuse_what_differs(group, options);
  }
  broadcast_from_the_cpu(group);
  move_bytes(group);
}

}  // namespace lrun::detail::testing
