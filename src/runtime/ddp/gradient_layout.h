#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/gradient_sync.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ddp/bucket_plan.h"

namespace lrun::detail {

/// What is to be averaged: frozen parameters left out, tied ones once.
/// \throws std::invalid_argument, lrun::Unsupported  see GradientSync.
std::vector<NamedTensor> trained_parameters(std::vector<NamedTensor> parameters);

std::vector<BucketItem> bucket_items(const std::vector<NamedTensor>& parameters);

/// The part of `flat` that begins at `offset`, shaped and laid out like `parameter`, so that optimizers and autograd
/// work on both in one pass.
at::Tensor gradient_view(const at::Tensor& flat, std::int64_t offset, const at::Tensor& parameter);

/// \throws std::invalid_argument  the parameter is on another device than the bucket of its gradient; names it.
void refuse_other_device(const std::string& name, const at::Tensor& parameter, const at::Tensor& bucket);

/// \throws std::logic_error  the parameter is not any more what `gradient` was made for; names it and says how to mend
/// it.
void refuse_other_form(const NamedTensor& parameter, const at::Tensor& gradient);

/// The values of a vector. One copy from the device for all of them: each number that is read there alone waits for all
/// that is queued.
std::vector<double> numbers_of(const at::Tensor& flags);

/// What gradients of `dtype` are sent as.
at::ScalarType wire_type(WireFormat format, at::ScalarType dtype);

}  // namespace lrun::detail
