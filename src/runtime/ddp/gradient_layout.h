#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/gradient_sync.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ddp/bucket_plan.h"

namespace lrun::detail {

/// The parameters to average: frozen ones are left out, tied ones occur once.
/// \throws std::invalid_argument, lrun::Unsupported  see GradientSync.
std::vector<NamedTensor> trained_parameters(std::vector<NamedTensor> parameters);

std::vector<BucketItem> bucket_items(const std::vector<NamedTensor>& parameters);

/// The part of `flat` that begins at `offset`, shaped and laid out like `parameter`, so that optimizers and autograd
/// work on both in one pass.
at::Tensor gradient_view(const at::Tensor& flat, std::int64_t offset, const at::Tensor& parameter);

/// \throws std::invalid_argument  the parameter is on another device than the bucket of its gradient; names it.
void refuse_other_device(const std::string& name, const at::Tensor& parameter, const at::Tensor& bucket);

/// \throws std::logic_error  the parameter no longer has the form that `gradient` was made for; names it and the fix.
void refuse_other_form(const NamedTensor& parameter, const at::Tensor& gradient);

/// The values of a vector, in one copy from the device: reading each number alone would wait for all queued work each
/// time.
std::vector<double> numbers_of(const at::Tensor& flags);

/// The type in which gradients of `dtype` travel between ranks.
at::ScalarType wire_type(WireFormat format, at::ScalarType dtype);

}  // namespace lrun::detail
