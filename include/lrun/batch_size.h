#pragma once

#include <lrun/export.h>

#include <cstdint>
#include <string_view>

namespace lrun {

/// Samples per optimizer step when every loader gives batches of `loader_batch`: loader_batch · devices · nodes under
/// ddp, ddp_spawn, ddp_fork, ddp_notebook, ddp_sharded, horovod, deepspeed and tpu; loader_batch · nodes under ddp2,
/// which splits a batch over the devices of a node; loader_batch under dp and single.
/// \param devices     of one node.
/// \param accumulate  batches whose gradients are accumulated before a step.
/// \throws std::invalid_argument  another strategy, dp on several nodes, single on several devices, or a number below
///                                1.
[[nodiscard]] LRUN_EXPORT std::int64_t effective_batch_size(std::string_view strategy, std::int64_t loader_batch,
                                                            std::int64_t devices, std::int64_t nodes = 1,
                                                            std::int64_t accumulate = 1);

/// Scales a learning rate that was tuned for batches of `reference_batch` in proportion to the batch size (Goyal et
/// al., arXiv 1706.02677; use some epochs of warm-up): 0.001 at 7 is 0.008 at 56.
/// \throws std::invalid_argument  a batch below 1.
[[nodiscard]] LRUN_EXPORT double linear_learning_rate(double learning_rate, std::int64_t reference_batch,
                                                      std::int64_t effective_batch);

/// Scales by the square root of the proportion instead, for Adam and similar optimizers: 0.001 at 7 is 0.00283 at 56.
/// \throws std::invalid_argument  a batch below 1.
[[nodiscard]] LRUN_EXPORT double square_root_learning_rate(double learning_rate, std::int64_t reference_batch,
                                                           std::int64_t effective_batch);

}  // namespace lrun
