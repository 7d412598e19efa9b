// A training step under the strategy of LRUN_STRATEGY, over the devices of LRUN_DEVICES: milliseconds of the slowest
// rank, one thread a device.
//
// A rank of bench/runtime.py. An order is 'NET BATCH KIND REPETITIONS', with the batch of this process and as kinds
//   plain     no wrapper: what the ranks can do at all
//   no_sync   wrapped, gradients stay on the rank
//   synced    wrapped, gradients averaged
//   watched   as synced, where the guards compare the parameters of all ranks in every step, not in every 500th
//   trained   as synced, and the optimizer's step (SGD)
// Nets: 'linear', 12 x (Linear(1024) + ReLU); 'cnn', two convolutions and two linear layers on 28 x 28 images.
#include <lrun/session.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "turns.h"

namespace {

using lrun::bench::Figures;

struct LinearNet : torch::nn::Module {
  static constexpr int kLayers = 12;
  static constexpr std::int64_t kWidth = 1024;

  LinearNet() {
    for (int layer = 0; layer < kLayers; ++layer) {
      layers.push_back(register_module("layer" + std::to_string(layer), torch::nn::Linear(kWidth, kWidth)));
    }
  }
  at::Tensor forward(at::Tensor hidden) {
    for (auto& layer : layers) hidden = at::relu(layer(hidden));
    return hidden;
  }
  static at::Tensor samples(std::int64_t count) { return at::randn({count, kWidth}); }

  std::vector<torch::nn::Linear> layers;
};

struct ConvolutionNet : torch::nn::Module {
  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor half = at::max_pool2d(at::relu(first(images)), 2);
    const at::Tensor quarter = at::max_pool2d(at::relu(second(half)), 2);
    return last(at::relu(hidden(quarter.flatten(1))));
  }
  static at::Tensor samples(std::int64_t count) { return at::randn({count, 1, 28, 28}); }

  torch::nn::Conv2d first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 3).padding(1)));
  torch::nn::Conv2d second =
      register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3).padding(1)));
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(64 * 7 * 7, 128));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(128, 10));
};

/// A network with and without a wrapper.
template <class Net>
class Pair {
 public:
  explicit Pair(lrun::Session& session)
      : session_(session),
        model_(session.wrap(std::make_shared<Net>())),
        watched_(session.wrap(std::make_shared<Net>(),
                              lrun::WrapOptions{.guards = lrun::GuardOptions{.compare_parameters_every = 1}})),
        optimizer_(session.optimizer<torch::optim::SGD>(model_, 1e-4)) {}

  /// \return milliseconds of the slowest rank, the median of all repetitions.
  double time(std::int64_t batch_size, const std::string& kind, int repetitions) {
    if (!batch_.defined() || batch_.size(0) != batch_size) batch_ = Net::samples(batch_size);
    std::vector<double> slowest;
    for (int i = 0; i < repetitions; ++i) {
      session_.barrier();
      const auto begin = std::chrono::steady_clock::now();
      step(kind);
      const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
      slowest.push_back(session_.all_reduce(taken.count(), lrun::ReduceOp::kMax));
    }
    return lrun::bench::median(slowest);
  }

 private:
  void step(const std::string& kind) {
    const auto loss = [](Net& net, const at::Tensor& part) { return net.forward(part).square().mean(); };
    if (kind == "plain") {
      plain_->zero_grad();
      loss(*plain_, batch_).backward();
      return;
    }
    if (kind == "watched") {
      watched_->zero_grad();
      watched_.train_step(batch_, loss);
      return;
    }
    optimizer_.zero_grad();
    if (kind == "no_sync") {
      const auto guard = model_.no_sync();
      model_.train_step(batch_, loss);
    } else {
      model_.train_step(batch_, loss);
    }
    if (kind == "trained") optimizer_.step();
  }

  lrun::Session& session_;
  std::shared_ptr<Net> plain_ = std::make_shared<Net>();
  lrun::Model<Net> model_;
  lrun::Model<Net> watched_;
  lrun::Optimizer<torch::optim::SGD> optimizer_;
  at::Tensor batch_;
};

}  // namespace

int main() {
  lrun::Session session({.timeout = std::chrono::seconds(60), .banner = false});
  Pair<LinearNet> linear(session);
  Pair<ConvolutionNet> convolutional(session);
  torch::manual_seed(session.rank_seed());  // ranks with the same batches would be told of it
  return lrun::bench::take_turns(session.is_rank_zero(), [&](std::istream& order) {
    std::string net;
    std::string kind;
    std::int64_t batch_size = 0;
    int repetitions = 0;
    order >> net >> batch_size >> kind >> repetitions;
    if (net == "linear") return Figures{{kind, linear.time(batch_size, kind, repetitions)}};
    if (net == "cnn") return Figures{{kind, convolutional.time(batch_size, kind, repetitions)}};
    throw std::invalid_argument("unknown net '" + net + "'");
  });
}
