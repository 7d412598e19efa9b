#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>

#include <vector>

namespace lrun {

/// Scales the gradients of `parameters` so that the norm of all of them together is at most `max_norm`; between
/// backward() and the optimizer's step.
///
///     model.train_step(batch, step);
///     lrun::clip_grad_norm(model.parameters(), 1.0);
///     optimizer.step();
///
/// The norm is that of the gradients that one process would have on all ranks' batches, under every strategy: after
/// backward() all ranks have the same averaged gradients, also those of parameters whose optimizer state is another
/// rank's. So nothing is communicated, and all ranks scale by the same number. Under no_sync() the gradients are still
/// this rank's alone: clip after the train_step() that averages them.
///
/// \param norm_type  p of the p-norm; infinity: the largest absolute value.
/// \return the norm before, computed in double; 0 where no parameter has a gradient. When it is not finite the
///         gradients are left as they are: pass over the step.
/// \throws std::invalid_argument  `max_norm` is negative or not a number, or `norm_type` not above 0.
LRUN_EXPORT double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2);

}  // namespace lrun
