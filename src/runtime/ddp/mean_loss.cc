#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <lrun/collectives.h>
#include <lrun/error.h>
#include <lrun/optimizer.h>

#include <stdexcept>
#include <string>

namespace lrun::detail {
namespace {

std::string describe_evaluation(double update, double number) {
  return "evaluation " + std::to_string(static_cast<std::uint64_t>(number)) + " of update " +
         std::to_string(static_cast<std::uint64_t>(update));
}

/// The mean of the ranks' losses, summed in the order of ranks. Tags of all_reduce would not do: NCCL compares none.
double mean_over_ranks(Collectives& collectives, double loss, const Evaluation& evaluation) {
  const at::Tensor rows = at::empty({collectives.world_size(), 3}, at::kDouble);
  collectives.all_gather(
      rows,
      at::tensor({loss, static_cast<double>(evaluation.update), static_cast<double>(evaluation.number)}, at::kDouble));
  const auto row = rows.accessor<double, 2>();
  double sum = 0;
  for (int rank = 0; rank < collectives.world_size(); ++rank) {
    if (row[rank][1] != row[0][1] || row[rank][2] != row[0][2]) {
      throw CollectiveMismatch("step(closure): rank 0 is in " + describe_evaluation(row[0][1], row[0][2]) +
                               ", but rank " + std::to_string(rank) + " in " +
                               describe_evaluation(row[rank][1], row[rank][2]) +
                               ": the ranks' optimizers decided differently; give them equal options, processors and "
                               "numbers of threads");
    }
    sum += row[rank][0];
  }
  return sum / collectives.world_size();
}

}  // namespace

at::Tensor mean_loss(const std::function<at::Tensor()>& closure, Collectives* collectives,
                     const Evaluation& evaluation) {
  at::Tensor loss;
  {
    const at::AutoGradMode enabled(true);  // torch's optimizers disable it
    loss = closure();
  }
  if (!loss.defined()) throw std::invalid_argument("the closure of step() returned no loss");
  if (loss.numel() != 1) {
    throw std::invalid_argument("the closure of step() returned a loss of " + std::to_string(loss.numel()) +
                                " elements, not of one");
  }
  const at::NoGradGuard no_grad;
  if (collectives == nullptr || collectives->world_size() == 1) return loss.detach().clone().reshape({});
  return at::full({}, mean_over_ranks(*collectives, loss.cpu().item<double>(), evaluation), loss.options());
}

}  // namespace lrun::detail
