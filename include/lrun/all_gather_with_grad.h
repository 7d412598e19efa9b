#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>

namespace lrun {

class Collectives;

/// Gathers the samples of all ranks and lets gradients flow back to the ranks that they came from: for losses that
/// compare samples with those of all ranks (contrastive losses, InfoNCE).
///
///     model.train_step(batch, encode, [&](const Codes& codes, const Views&) {
///       const auto first = lrun::all_gather_with_grad(session.collectives(), codes.first);
///       const auto second = lrun::all_gather_with_grad(session.collectives(), codes.second);
///       return contrast(first, second);  // over the batches of all ranks
///     });
///
/// Under dp and ddp2 call it in step_end, which runs once per process, and not in `step`.
///
/// Gradient  of a rank's tensor: the sum of what all ranks' losses give its rows. Averaged over the ranks, as
///           train_step() does, the parameters' gradients are those of the mean of all ranks' losses, whether every
///           rank computes the same loss over all samples or that of its own samples against all.
/// Cost      one all_gather in the forward and one reduce_scatter in the backward.
/// Order     collective, also in backward: every rank's loss uses the result, and the ranks' graphs are the same
///           wherever gradients are averaged meanwhile. Else CollectiveMismatch.
/// Limits    no double backward: backward(create_graph=true) is lrun::Unsupported in a world of several ranks. No Join:
///           a rank that has run out of batches gathers nothing, and its next operation is a CollectiveMismatch. Pad
///           the epoch instead (Remainder::kPad).
/// Threads   the thread of the forward. `collectives` must outlive the backward.
///
/// \param tensor  (n, …), of one shape and dtype on all ranks; has float16, bfloat16, float32 or float64 if it needs
///                gradients. In a world of one it is returned itself.
/// \return (world size · n, …): rank r's rows from r · n on; equal on all ranks. No view: it may be changed in place.
/// \throws std::invalid_argument  the tensor has no dimensions. \throws errors of Collectives.
[[nodiscard]] LRUN_EXPORT at::Tensor all_gather_with_grad(Collectives& collectives, const at::Tensor& tensor);

}  // namespace lrun
