#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/session.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/support/thread_ranks.h"

namespace lrun::test {

inline constexpr std::int64_t kSmallBatch = 12;  // a multiple of 2, 3 and 4

/// Parameters of several sizes, one that is never used, and one that is frozen.
struct SmallNet : torch::nn::Module {
  SmallNet() {
    torch::manual_seed(1);
    first = register_module("first", torch::nn::Linear(8, 24));
    second = register_module("second", torch::nn::Linear(24, 16));
    last = register_module("last", torch::nn::Linear(16, 3));
    unused = register_parameter("unused", at::ones({5}));
    frozen = register_parameter("frozen", at::ones({16}), false);
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) { return last(at::tanh(second(at::tanh(first(input)))) * frozen); }

  torch::nn::Linear first{nullptr}, second{nullptr}, last{nullptr};
  at::Tensor unused, frozen;
};

inline at::Tensor wave(double frequency, std::int64_t columns) {
  return at::sin(at::arange(kSmallBatch * columns, at::kDouble) * frequency).view({-1, columns});
}

/// The gradients of this rank's part of the batch of `step`, averaged; of what `scale` makes of the loss, if given.
inline void train_step(Model<SmallNet>& model, int step, const Session& session,
                       const std::function<at::Tensor(const at::Tensor& loss)>& scale = nullptr) {
  const std::int64_t part = kSmallBatch / session.world_size();
  const auto target = wave(1.3 + 0.01 * step, 3).narrow(0, session.rank() * part, part);
  model.train_step(wave(0.7 + 0.01 * step, 8).narrow(0, session.rank() * part, part),
                   [&](SmallNet& net, const at::Tensor& input) {
                     const at::Tensor loss = at::mse_loss(net.forward(input), target);
                     return scale ? scale(loss) : loss;
                   });
}

inline void run_strategy(const std::string& strategy, int world_size, const std::function<void(Session&)>& body) {
  test::run_sessions(world_size, body, [&](int) {
    SessionOptions options;
    options.strategy = strategy;
    options.gradients = {.bucket_bytes = 1024, .first_bucket_bytes = 512};
    options.banner = false;
    return options;
  });
}

inline void expect_equal(const torch::nn::Module& actual, const torch::nn::Module& expected, double tolerance) {
  for (const auto& item : expected.named_parameters()) {
    const auto other = actual.named_parameters()[item.key()];
    const double difference = (other - item.value()).abs().max().item<double>();
    EXPECT_LE(difference, tolerance * item.value().abs().max().item<double>()) << item.key();
  }
}

}  // namespace lrun::test
