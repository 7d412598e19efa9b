// DDP on W ranks gives the parameters of one process on the whole batch.
#include <gtest/gtest.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/optimizer_shards.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/support/oracle.h"
#include "runtime/support/thread_ranks.h"
#include "support/temporary_folder.h"

namespace lrun::detail {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kSteps = 20;
constexpr std::int64_t kGlobalBatch = 12;  // a multiple of 2, 3 and 4
constexpr std::int64_t kFeatures = 16;
constexpr std::int64_t kClasses = 5;

/// A perceptron with a layer that is applied twice (shared), an expert that sees only some samples (so it is unused on
/// some ranks in some steps, and on all ranks in others), and a frozen layer.
struct Perceptron : nn::Module {
  enum class Registered { kAsUsed, kInReverse };

  explicit Perceptron(Registered order = Registered::kAsUsed) {
    std::vector<std::function<void()>> steps = {
        [this] { first = register_module("first", nn::Linear(kFeatures, 32)); },
        [this] { shared = register_module("shared", nn::Linear(32, 32)); },
        [this] { expert = register_module("expert", nn::Linear(32, 32)); },
        [this] { frozen = register_module("frozen", nn::Linear(32, 32)); },
        [this] { never = register_module("never", nn::Linear(3, 3)); },
        [this] { last = register_module("last", nn::Linear(32, kClasses)); },
    };
    if (order == Registered::kInReverse) std::ranges::reverse(steps);
    for (const auto& step : steps) step();
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  }

  at::Tensor forward(const at::Tensor& input) {
    auto hidden = at::relu(first(input));
    hidden = at::tanh(shared(at::tanh(shared(hidden))));
    const auto chosen = at::nonzero(input.select(1, 0) > 1).squeeze(1);
    if (chosen.numel() > 0) hidden = hidden.index_add(0, chosen, at::tanh(expert(hidden.index_select(0, chosen))));
    return last(hidden + frozen(hidden));
  }

  nn::Linear first{nullptr}, shared{nullptr}, expert{nullptr}, frozen{nullptr}, never{nullptr}, last{nullptr};
};

/// Gradients arrive in the order of registration, so that buckets are made anew after the first step.
struct Reversed : Perceptron {
  Reversed() : Perceptron(Registered::kInReverse) {}
};

struct Convolutional : nn::Module {
  Convolutional() {
    first = register_module("first", nn::Conv2d(nn::Conv2dOptions(1, 8, 3).padding(1)));
    second = register_module("second", nn::Conv2d(nn::Conv2dOptions(8, 16, 3).padding(1)));
    last = register_module("last", nn::Linear(16, kClasses));
  }

  at::Tensor forward(const at::Tensor& input) {
    auto hidden = at::max_pool2d(at::relu(first(input.view({-1, 1, 4, 4}))), 2);
    return last(at::relu(second(hidden)).amax({2, 3}));
  }

  nn::Conv2d first{nullptr}, second{nullptr};
  nn::Linear last{nullptr};
};

struct Data {
  std::vector<at::Tensor> inputs;  // one whole batch each
  std::vector<at::Tensor> targets;
};

Data make_data(std::int64_t batches, at::ScalarType dtype) {
  Data data;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    auto input = at::randn({kGlobalBatch, kFeatures}, dtype);
    // Samples with more than 1 in their first feature go through the expert: none, one, or whatever came out.
    if (batch % 4 < 2) input.select(1, 0).clamp_(-1, 1);
    if (batch % 4 == 1) input[0][0] = 2;
    data.inputs.push_back(input);
    data.targets.push_back(at::randn({kGlobalBatch, kClasses}, dtype));
  }
  return data;
}

template <class Net>
std::shared_ptr<Net> make_net(std::uint64_t seed, at::ScalarType dtype) {
  torch::manual_seed(seed);
  auto net = std::make_shared<Net>();
  net->to(dtype);
  return net;
}

torch::optim::SGD make_optimizer(const nn::Module& net) {
  // With momentum and decay a zero gradient is not the same as none.
  return torch::optim::SGD(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3));
}

at::Tensor loss_of(const at::Tensor& outputs, const at::Tensor& target, std::int64_t accumulated) {
  return at::mse_loss(outputs, target) / static_cast<double>(accumulated);
}

template <class Net>
void train_alone(Net& net, const Data& data, std::int64_t accumulated) {
  auto optimizer = make_optimizer(net);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    for (std::int64_t micro = 0; micro < accumulated; ++micro) {
      const auto index = static_cast<std::size_t>(step * accumulated + micro);
      loss_of(net.forward(data.inputs[index]), data.targets[index], accumulated).backward();
    }
    optimizer.step();
  }
}

template <class Net>
void train_rank(std::shared_ptr<Net> net, const Data& data, std::int64_t accumulated, bool sharded,
                Collectives& collectives) {
  WrapOptions options;
  options.gradients = GradientSyncOptions{.bucket_bytes = 4096, .first_bucket_bytes = 1024};  // several buckets
  DistributedDataParallel<Net> ddp(net, collectives, options);
  auto optimizer = make_optimizer(*net);
  std::optional<OptimizerShards> shards;
  if (sharded) shards.emplace(optimizer, collectives);
  const std::int64_t part = kGlobalBatch / collectives.world_size();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    for (std::int64_t micro = 0; micro < accumulated; ++micro) {
      const auto index = static_cast<std::size_t>(step * accumulated + micro);
      const auto input = data.inputs[index].narrow(0, collectives.rank() * part, part);
      const auto target = data.targets[index].narrow(0, collectives.rank() * part, part);
      auto backward = [&] { loss_of(ddp.forward(input), target, accumulated).backward(); };
      if (micro + 1 < accumulated) {
        const auto local = ddp.no_sync();
        backward();
      } else {
        backward();
      }
    }
    if (shards) {
      shards->step(optimizer);
    } else {
      optimizer.step();
    }
  }
}

/// Largest |a−b| of a parameter, relative to its largest |b|.
double elementwise_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

/// Of all parameters together: ‖a−b‖ / ‖b‖.
double normwise_difference(const nn::Module& a, const nn::Module& b) {
  double difference = 0;
  double norm = 0;
  for (const auto& item : b.named_parameters()) {
    const auto other = a.named_parameters()[item.key()];
    difference += (other - item.value()).pow(2).sum().item<double>();
    norm += item.value().pow(2).sum().item<double>();
  }
  return std::sqrt(difference / norm);
}

struct Case {
  std::int64_t world_size;
  std::int64_t accumulated;
  bool sharded = false;  // the optimizer's state
};

class DdpEquality : public testing::TestWithParam<Case> {
 protected:
  /// Trains alone and on all ranks, and hands the results to `compare`.
  template <class Net>
  void run(at::ScalarType dtype, const std::function<void(const Net& rank, const Net& alone)>& compare) {
    const auto [world_size, accumulated, sharded] = GetParam();
    at::set_num_threads(1);
    auto alone = make_net<Net>(1, dtype);
    std::vector<std::shared_ptr<Net>> nets;
    for (int rank = 0; rank < world_size; ++rank) {
      nets.push_back(make_net<Net>(static_cast<std::uint64_t>(rank) + 1, dtype));  // only rank 0's count
    }
    const auto data = make_data(kSteps * accumulated, dtype);
    train_alone(*alone, data, accumulated);
    test::run_ranks(static_cast<int>(world_size),
                    [&, steps = accumulated, split = sharded](int rank, Collectives& collectives) {
                      train_rank(nets[static_cast<std::size_t>(rank)], data, steps, split, collectives);
                    });
    compare(*nets[0], *alone);
    for (const auto& net : nets) {
      for (const auto& item : net->named_parameters()) {
        EXPECT_TRUE(item.value().equal(nets[0]->named_parameters()[item.key()]))
            << item.key() << " is not bitwise equal on all ranks";
      }
    }
  }
};

void expect_equal_elements(const nn::Module& rank, const nn::Module& alone) {
  for (const auto& item : alone.named_parameters()) {
    EXPECT_LE(elementwise_difference(rank.named_parameters()[item.key()], item.value()), 1e-6) << item.key();
  }
}

TEST_P(DdpEquality, HoldsInDoubleForEveryElement) { run<Perceptron>(at::kDouble, expect_equal_elements); }

TEST_P(DdpEquality, HoldsInDoubleWhereLayersAreRegisteredInReverse) {
  run<Reversed>(at::kDouble, expect_equal_elements);
}

TEST_P(DdpEquality, HoldsInFloatForTheNormOfAPerceptron) {
  run<Perceptron>(at::kFloat, [](const Perceptron& rank, const Perceptron& alone) {
    EXPECT_LE(normwise_difference(rank, alone), 1e-6);
  });
}

TEST_P(DdpEquality, HoldsInFloatForTheNormOfAConvolutionalNetwork) {
  run<Convolutional>(at::kFloat, [](const Convolutional& rank, const Convolutional& alone) {
    EXPECT_LE(normwise_difference(rank, alone), 1e-4);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, DdpEquality,
                         testing::Values(Case{1, 1}, Case{2, 1}, Case{3, 1}, Case{4, 1}, Case{2, 3}, Case{4, 2},
                                         Case{2, 1, true}, Case{3, 2, true}),
                         [](const auto& test_case) {
                           return std::to_string(test_case.param.world_size) + "RanksAccumulating" +
                                  std::to_string(test_case.param.accumulated) +
                                  (test_case.param.sharded ? "Sharded" : "");
                         });

/// Repeats ddp_oracle.py: values that two programs can make without communication.
at::Tensor wave(double frequency, at::IntArrayRef sizes) {
  return at::sin(at::arange(c10::multiply_integers(sizes), at::kDouble) * frequency).view(sizes);
}

Data make_oracle_data(std::int64_t batches) {
  Data data;
  for (std::int64_t index = 0; index < batches; ++index) {
    const double shift = 0.01 * static_cast<double>(index);
    auto input = wave(0.7 + shift, {kGlobalBatch, kFeatures}) * 2;
    if (index % 4 < 2) input.select(1, 0).clamp_(-1, 1);
    if (index % 4 == 1) input[0][0] = 2;
    data.inputs.push_back(input);
    data.targets.push_back(wave(1.3 + shift, {kGlobalBatch, kClasses}));
  }
  return data;
}

void expect_parameter(const std::string& line, const Perceptron& net) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  const auto parameters = net.named_parameters();
  const auto* parameter = parameters.find(word);
  ASSERT_NE(parameter, nullptr) << line.substr(0, 200);
  std::vector<double> elements;
  for (std::string element; words >> element;) elements.push_back(std::strtod(element.c_str(), nullptr));
  ASSERT_EQ(elements.size(), static_cast<std::size_t>(parameter->numel())) << word;
  EXPECT_LE(elementwise_difference(parameter->flatten(), at::tensor(elements)), 1e-6) << word;
}

// Slow: importing Python's torch takes seconds.
TEST(DdpOracle, TorchsOwnDdpInPythonGivesTheSameParameters) {
  const test::Python python = test::find_python();
  if (python.import.status != 0 && !python.is_asked_for) {
    GTEST_SKIP() << "python3 has no torch; LRUN_TEST_PYTHON may name one that has: " << python.import.output;
  }
  ASSERT_EQ(python.import.status, 0) << "LRUN_TEST_PYTHON has no torch: " << python.import.output;

  constexpr int kWorldSize = 2;
  constexpr std::int64_t kAccumulated = 2;
  const test::TemporaryFolder folder;
  const test::Shell oracle = test::run_shell(python.command + "'" LRUN_TEST_SOURCE "/ddp_oracle.py' " +
                                             std::to_string(kWorldSize) + " " + std::to_string(kSteps) + " " +
                                             std::to_string(kAccumulated) + " '" + folder.path().string() + "'");
  ASSERT_EQ(oracle.status, 0) << oracle.output;

  std::vector<std::shared_ptr<Perceptron>> nets;
  for (std::uint64_t rank = 0; rank < kWorldSize; ++rank) nets.push_back(make_net<Perceptron>(rank, at::kDouble));
  {
    at::NoGradGuard no_grad;
    double frequency = 0.3;
    for (auto& parameter : nets[0]->parameters()) {
      parameter.copy_(wave(frequency, parameter.sizes()) * 0.2);
      frequency += 0.1;
    }
  }
  const auto data = make_oracle_data(kSteps * kAccumulated);
  test::run_ranks(kWorldSize, [&](int rank, Collectives& collectives) {
    train_rank(nets[static_cast<std::size_t>(rank)], data, kAccumulated, false, collectives);
  });
  std::istringstream lines(oracle.output);
  std::size_t compared = 0;
  for (std::string line; std::getline(lines, line); ++compared) expect_parameter(line, *nets[0]);
  EXPECT_EQ(compared, nets[0]->named_parameters().size()) << oracle.output.substr(0, 400);
}

}  // namespace
}  // namespace lrun::detail
