#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>

namespace lrun {

class Collectives;

/// Evaluation over ranks that have different numbers of samples (Remainder::kUneven), each sample once:
///
///     auto loader = session.loader(data, {.batch_size = 64, .shuffle = false, .remainder = lrun::Remainder::kUneven});
///     std::vector<at::Tensor> outputs = {at::empty({0, classes}, session.device())};  // a rank may have no batch
///     double loss = 0, samples = 0;
///     for (const auto& batch : *loader) {
///       outputs.push_back(model.eval_step(batch, forward));  // (samples of the batch, classes), on session.device()
///       const at::Tensor target = batch.target.to(session.device());
///       loss += torch::nll_loss(outputs.back(), target, {}, at::Reduction::Sum).item<double>();
///       samples += target.size(0);
///     }
///     const double mean = lrun::weighted_mean(session.collectives(), loss / samples, samples);
///     const auto predictions = lrun::all_gather_in_order(session.collectives(), torch::cat(outputs));
///
/// Cost     one all_reduce of two numbers.
/// Threads  as for operations of Collectives.
///
/// \return Σ value · weight / Σ weight over all ranks, in double; the same on all ranks. A rank of weight 0 does not
///         count, and its value may be NaN. NaN if all weights are 0.
/// \throws std::invalid_argument  on this rank: the weight is negative or not finite.
/// \throws errors of Collectives.
[[nodiscard]] LRUN_EXPORT double weighted_mean(Collectives& collectives, double value, double weight);

/// Gives every rank the rows of all ranks in the order of the loader's epoch; without shuffling that is the order of
/// the data set. Collective.
///
/// Cost     as all_gather() of lrun/exchange.h, and one copy.
///
/// \param rows  (n, …): a row for each sample of this rank, in the order of its loader. The loader has
///              Remainder::kUneven (or the samples divide evenly) and begins at the beginning of an epoch, so that rank
///              r of W has the samples r, r+W, r+2W, …
/// \return (all samples, …), on the device of `rows`, without gradients.
/// \throws lrun::CollectiveMismatch  on all ranks, which can go on: the numbers of rows are not those of such loaders,
///                                   or dtypes or shapes do not fit.
/// \throws std::invalid_argument     `rows` has no dimensions.
[[nodiscard]] LRUN_EXPORT at::Tensor all_gather_in_order(Collectives& collectives, const at::Tensor& rows);

}  // namespace lrun
