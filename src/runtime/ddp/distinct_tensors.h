#pragma once

#include <lrun/gradient_sync.h>

#include <vector>

namespace lrun::detail {

/// Each tensor once, under the first of its names: a tied parameter has one for each module that registered it.
/// Undefined ones are left out.
std::vector<NamedTensor> distinct(std::vector<NamedTensor> tensors);

}  // namespace lrun::detail
