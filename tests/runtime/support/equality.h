#pragma once

#include <lrun/session.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

// The models for "equal to one process on the whole batch": tests/runtime/README.md. Uses nothing of tests, so that
// programs can include it, too.
namespace lrun::test::equality {

namespace nn = torch::nn;

inline constexpr std::int64_t kSteps = 20;
inline constexpr std::int64_t kGlobalBatch = 24;  // over 1, 2, 3, 4, 6 and 8 devices all parts are equal
inline constexpr std::int64_t kFeatures = 16;
inline constexpr std::int64_t kClasses = 5;

/// inputs: (samples, 16), of each model's own kind.
struct Mlp : nn::Module {
  static constexpr double kFloatLimit = 1e-6;

  Mlp() {
    first = register_module("first", nn::Linear(kFeatures, 24));
    shared = register_module("shared", nn::Linear(24, 24));
    frozen = register_module("frozen", nn::Linear(24, 24));
    never = register_module("never", nn::Linear(3, 3));
    last = register_module("last", nn::Linear(24, kClasses));
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& input) {
    const auto hidden = at::tanh(shared(at::tanh(shared(at::tanh(first(input))))));
    return last(hidden + frozen(hidden));
  }
  static at::Tensor input(at::ScalarType dtype) { return at::randn({kGlobalBatch, kFeatures}, dtype); }

  nn::Linear first{nullptr}, shared{nullptr}, frozen{nullptr}, never{nullptr}, last{nullptr};
};

/// Its statistics are those of a part of the batch, as in torch's DDP and DataParallel.
struct BatchNormCnn : nn::Module {
  static constexpr double kFloatLimit = 1e-4;

  BatchNormCnn() {
    first = register_module("first", nn::Conv2d(nn::Conv2dOptions(1, 6, 3).padding(1)));
    norm = register_module("norm", nn::BatchNorm2d(6));
    last = register_module("last", nn::Linear(6, kClasses));
  }
  at::Tensor forward(const at::Tensor& input) {
    return last(at::tanh(norm(first(input.view({-1, 1, 4, 4})))).mean({2, 3}));
  }
  static at::Tensor input(at::ScalarType dtype) { return at::randn({kGlobalBatch, kFeatures}, dtype); }

  nn::Conv2d first{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Linear last{nullptr};
};

struct SparseEmbedding : nn::Module {
  static constexpr double kFloatLimit = 1e-6;

  SparseEmbedding() {
    words = register_module("words", nn::Embedding(nn::EmbeddingOptions(40, 8).sparse(true)));
    last = register_module("last", nn::Linear(8, kClasses));
  }
  at::Tensor forward(const at::Tensor& input) { return last(at::tanh(words(input).mean(1))); }
  static at::Tensor input(at::ScalarType) { return at::randint(30, {kGlobalBatch, kFeatures}, at::kLong); }

  nn::Embedding words{nullptr};
  nn::Linear last{nullptr};
};

struct Batch {
  at::Tensor data;
  at::Tensor target;
};

template <class Net>
std::vector<Batch> make_data(at::ScalarType dtype) {
  torch::manual_seed(3);
  std::vector<Batch> batches;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    batches.push_back({Net::input(dtype), at::randn({kGlobalBatch, kClasses}, dtype)});
  }
  return batches;
}

template <class Net>
std::shared_ptr<Net> make_net(std::uint64_t seed, at::ScalarType dtype) {
  torch::manual_seed(seed);
  auto net = std::make_shared<Net>();
  net->to(dtype);
  return net;
}

/// One process and one module on the whole batch. A batch norm sees the parts one by one, as it does everywhere, and
/// keeps what it saw in the first.
template <class Net>
void train_alone(Net& net, const std::vector<Batch>& batches, int parts) {
  torch::optim::SGD optimizer(net.parameters(), 0.1);
  for (const Batch& batch : batches) {
    optimizer.zero_grad();
    std::vector<at::Tensor> outputs;
    std::vector<at::Tensor> kept;
    for (const auto& part : batch.data.tensor_split(parts)) {
      outputs.push_back(net.forward(part));
      if (kept.empty()) {
        for (const auto& buffer : net.buffers()) kept.push_back(buffer.clone());
      }
    }
    at::mse_loss(at::cat(outputs), batch.target).backward();
    optimizer.step();
    const at::NoGradGuard no_grad;
    for (std::size_t index = 0; index < kept.size(); ++index) net.buffers()[index].copy_(kept[index]);
  }
}

inline std::vector<at::Tensor> state_of(const nn::Module& net) {
  auto tensors = net.parameters();
  for (const auto& buffer : net.buffers()) tensors.push_back(buffer);
  return tensors;
}

inline double largest_difference(const nn::Module& a, const nn::Module& b) {
  double largest = 0;
  const auto others = state_of(a);
  const auto tensors = state_of(b);
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const auto difference = (others[index] - tensors[index]).abs().max().item<double>();
    largest = std::max(largest, difference / tensors[index].abs().max().item<double>());
  }
  return largest;
}

/// Of the parameters, all together: the norm of the difference in times of that of `expected`. On devices of any kind.
/// (The running statistics of a batch norm are those of a rank's own part.)
inline double normwise_difference(const nn::Module& actual, const nn::Module& expected) {
  double difference = 0;
  double norm = 0;
  const auto in_double = [](const at::Tensor& tensor) { return tensor.detach().to(at::kCPU, at::kDouble); };
  const auto others = actual.named_parameters();
  for (const auto& item : expected.named_parameters()) {
    const at::Tensor wanted = in_double(item.value());
    difference += (in_double(others[item.key()]) - wanted).pow(2).sum().item<double>();
    norm += wanted.pow(2).sum().item<double>();
  }
  return std::sqrt(difference / norm);
}

template <class Net>
void train_process(Session& session, const std::shared_ptr<Net>& net, const std::vector<Batch>& batches) {
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  const std::int64_t share = kGlobalBatch / session.world_size();
  for (const Batch& whole : batches) {
    const auto part_of = [&](const at::Tensor& tensor) { return tensor.narrow(0, session.rank() * share, share); };
    optimizer.zero_grad();
    model.train_step(
        Batch{part_of(whole.data), part_of(whole.target)},
        [](Net& replica, const Batch& part) { return replica.forward(part.data); },
        [](const at::Tensor& outputs, const Batch& all) { return at::mse_loss(outputs, all.target); });
    optimizer.step();
  }
}

}  // namespace lrun::test::equality
