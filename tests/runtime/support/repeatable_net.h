#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace lrun::test {

/// The same values in every module of a shape, and in doubles. Ranks that are threads share one random generator, so
/// initial values may not come from it.
inline void set_repeatable(torch::nn::Module& module) {
  module.to(at::kDouble);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : module.parameters()) {
    parameter.copy_(at::sin(at::arange(parameter.numel(), at::kDouble)).view(parameter.sizes()));
  }
}

/// Two layers, and a buffer that counts calls of forward().
struct RepeatableNet : torch::nn::Module {
  RepeatableNet() {
    first = register_module("first", torch::nn::Linear(4, 8));
    last = register_module("last", torch::nn::Linear(8, 2));
    seen = register_buffer("seen", at::zeros({1}));
    set_repeatable(*this);
  }
  at::Tensor forward(const at::Tensor& input) {
    {
      const at::NoGradGuard no_grad;
      seen.add_(1);
    }
    return last(at::tanh(first(input)));
  }

  torch::nn::Linear first{nullptr}, last{nullptr};
  at::Tensor seen;
};

}  // namespace lrun::test
