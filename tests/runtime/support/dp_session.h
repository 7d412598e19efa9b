#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/session.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/support/layout.h"

namespace lrun::test {

struct NetImpl : torch::nn::Module {
  NetImpl() {
    layer = register_module("layer", torch::nn::Linear(4, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    temperature = register_parameter("temperature", at::ones({1}));
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) { return at::tanh(layer(input)); }

  torch::nn::Linear layer{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  at::Tensor temperature;
};
TORCH_MODULE(Net);

inline at::Tensor forward(NetImpl& replica, const at::Tensor& part) { return replica.forward(part); }

inline at::Tensor make_batch(std::int64_t samples) {
  return at::sin(at::arange(samples * 4, at::kDouble)).view({samples, 4});
}

inline std::unique_ptr<Session> dp_session(int devices) {
  return std::make_unique<Session>(options_of({"dp", devices}, 0));
}

inline void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  ASSERT_TRUE(actual.defined()) << what;
  EXPECT_LE((actual - expected).abs().max().item<double>(), 1e-12) << what;
}

}  // namespace lrun::test
