#pragma once

#include <lrun/collectives.h>

#include <chrono>
#include <memory>

namespace lrun::detail {

/// A world of one, named 'single': every operation checks its arguments as the others do and leaves the tensor as it is
/// (all_gather and reduce_scatter copy).
LRUN_EXPORT std::unique_ptr<Collectives> make_single(std::chrono::milliseconds timeout);

}  // namespace lrun::detail
