#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>

#include <vector>

namespace lrun {

/// Scales the gradients of `parameters` so that their total norm is at most `max_norm`. Call it between backward() and
/// the optimizer's step.
///
///     model.train_step(batch, step);
///     lrun::clip_grad_norm(model.parameters(), 1.0);
///     optimizer.step();
///
/// Under every strategy the norm is that of one process training on all ranks' batches: after backward() all ranks have
/// the same averaged gradients, also for parameters whose optimizer state another rank owns. So nothing is
/// communicated, and all ranks scale by the same factor. Under no_sync() the gradients are still this rank's own: clip
/// after the train_step() that averages them.
///
/// \param norm_type  p of the p-norm; infinity: the largest absolute value.
/// \return the norm before scaling, computed in double; 0 if no parameter has a gradient. If it is not finite the
/// gradients are left unchanged: skip the step.
/// \throws std::invalid_argument  `max_norm` is negative or not a number, or `norm_type` not above 0.
LRUN_EXPORT double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2);

}  // namespace lrun
