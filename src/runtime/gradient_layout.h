#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/gradient_sync.h>

#include <cstdint>
#include <vector>

#include "runtime/bucket_plan.h"

namespace lrun {

/// What is to be averaged: frozen parameters left out, tied ones once.
/// \throws std::invalid_argument, lrun::Unsupported  see GradientSync.
std::vector<NamedTensor> trained_parameters(std::vector<NamedTensor> parameters);

std::vector<BucketItem> bucket_items(const std::vector<NamedTensor>& parameters);

/// The part of `flat` that begins at `offset`, shaped and laid out like `parameter`, so that optimizers and autograd
/// work on both in one pass.
at::Tensor gradient_view(const at::Tensor& flat, std::int64_t offset, const at::Tensor& parameter);

/// What gradients of `dtype` are sent as.
at::ScalarType wire_type(WireFormat format, at::ScalarType dtype);

}  // namespace lrun
