#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/gradient_sync.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lrun::test {

inline constexpr GradientSyncOptions kOneBucketEach = {.bucket_bytes = 1, .first_bucket_bytes = 1};

inline at::Tensor parameter(std::vector<std::int64_t> sizes, at::ScalarType dtype = at::kFloat) {
  return at::ones(sizes, dtype).set_requires_grad(true);
}

inline std::vector<NamedTensor> named(const std::vector<at::Tensor>& tensors) {
  std::vector<NamedTensor> result;
  for (const auto& tensor : tensors) result.push_back({"p" + std::to_string(result.size()), tensor});
  return result;
}

/// Its gradient for `parameter` is `value` everywhere.
inline at::Tensor loss_with_gradient(const at::Tensor& parameter, double value) { return (parameter * value).sum(); }

inline void expect_gradient(const at::Tensor& parameter, double value, const std::string& when = "") {
  ASSERT_TRUE(parameter.grad().defined()) << when;
  EXPECT_TRUE(parameter.grad().eq(value).all().item<bool>())
      << when << ": the gradient is " << parameter.grad().flatten()[0].item<double>() << ", not " << value;
}

// The behaviour of torch::optim::Optimizer::zero_grad by default, and with set_to_none = false.
inline void zero_grad_to_none(at::Tensor& parameter) { parameter.mutable_grad().reset(); }
inline void zero_grad_in_place(at::Tensor& parameter) { parameter.mutable_grad().detach_().zero_(); }

}  // namespace lrun::test
