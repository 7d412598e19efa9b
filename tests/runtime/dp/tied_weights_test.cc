// Tied weights are one parameter, as in Python, whose parameters() has each once: LibTorch's has one for each module
// that registered it.
#include <gtest/gtest.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/session.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/support/layout.h"
#include "runtime/support/oracle.h"

namespace lrun::detail {
namespace {

namespace nn = torch::nn;
namespace optim = torch::optim;
using test::Layout;
using test::run_layout;

// As tied_weights_oracle.py has them.
constexpr std::int64_t kWords = 7;
constexpr std::int64_t kFeatures = 4;
constexpr std::int64_t kSteps = 5;
constexpr std::int64_t kBatch = 12;

at::Tensor wave(double frequency, at::IntArrayRef sizes) {
  return at::sin(at::arange(c10::multiply_integers(sizes), at::kDouble) * frequency).view(sizes);
}

/// The embedding's weight is the head's, too, and one layer is registered under two names. clone() unties the head: it
/// replaces the embedding's weight after reset() has registered it here.
struct TiedNet : nn::Cloneable<TiedNet> {
  TiedNet() {
    reset();
    to(at::kDouble);
    const at::NoGradGuard no_grad;
    double frequency = 0.3;
    for (const at::Tensor& parameter : {words->weight, layer->weight, layer->bias, bias}) {
      parameter.copy_(wave(frequency, parameter.sizes()) * 0.5);
      frequency += 0.1;
    }
  }
  void reset() final {
    words = register_module("words", nn::Embedding(kWords, kFeatures));
    layer = register_module("first", nn::Linear(kFeatures, kFeatures));
    register_module("again", layer);
    head = register_parameter("head", words->weight);
    bias = register_parameter("bias", at::zeros({kWords}));
  }
  at::Tensor forward(const at::Tensor& input) {
    return at::linear(at::tanh(layer(at::tanh(layer(words(input))))), head, bias);
  }

  nn::Embedding words{nullptr};
  nn::Linear layer{nullptr};
  at::Tensor head, bias;
};

using Values = std::map<std::string, at::Tensor>;

Values values_of(const TiedNet& net) {
  return {{"words", net.words->weight.detach()},
          {"weight", net.layer->weight.detach()},
          {"layer_bias", net.layer->bias.detach()},
          {"bias", net.bias.detach()}};
}

/// The output of the oracle.
Values parse(std::istream& lines) {
  Values values;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    std::vector<double> elements;
    for (std::string element; words >> element;) elements.push_back(std::strtod(element.c_str(), nullptr));
    values[name] = at::tensor(elements, at::kDouble);
  }
  return values;
}

Values recorded_values() {
  std::ifstream file(LRUN_TEST_SOURCE "/tied_weights.expected");
  return parse(file);
}

void expect_values(const TiedNet& net, const Values& expected, const std::string& who) {
  ASSERT_EQ(expected.size(), 4U) << who;
  for (const auto& [name, value] : values_of(net)) {
    ASSERT_TRUE(expected.contains(name)) << name;
    const at::Tensor difference = (value.flatten() - expected.at(name)).abs().max();
    EXPECT_LE(difference.item<double>(), 1e-12) << who << ", " << name;
  }
}

std::pair<at::Tensor, at::Tensor> batch_of(std::int64_t step, const Session& session) {
  const std::int64_t part = kBatch / session.world_size();
  const at::Tensor words = at::arange(kBatch) * (step + 2) % kWords;
  const at::Tensor mine = words.narrow(0, session.rank() * part, part);
  return {mine, (mine + 1) % kWords};
}

optim::SGDOptions sgd() { return optim::SGDOptions(0.5).momentum(0.9).weight_decay(1e-2); }

/// \param optimizer_of  makes one from session and model.
template <class OptimizerOf>
std::shared_ptr<TiedNet> train(Session& session, const OptimizerOf& optimizer_of) {
  const auto net = std::make_shared<TiedNet>();
  auto model = session.wrap(net);
  auto optimizer = optimizer_of(session, model);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    model.train_step(
        batch_of(step, session),
        [](TiedNet& replica, const std::pair<at::Tensor, at::Tensor>& part) { return replica.forward(part.first); },
        [](const at::Tensor& outputs, const auto& whole) { return at::cross_entropy_loss(outputs, whole.second); });
    optimizer.step();
  }
  return net;
}

Optimizer<optim::SGD> by_session(Session& session, Model<TiedNet>& model) {
  return session.optimizer<optim::SGD>(model, sgd());
}

optim::SGD by_parameters(Session&, Model<TiedNet>& model) { return optim::SGD(model.parameters(), sgd()); }

class TiedWeights : public testing::TestWithParam<Layout> {};

TEST_P(TiedWeights, AreTrainedAsPythonTrainsThem) {
  const Values expected = recorded_values();
  run_layout(GetParam(), [&](Session& session) {
    expect_values(*train(session, by_session), expected, "session.optimizer()");
    if (session.strategy() != "ddp_sharded") {
      expect_values(*train(session, by_parameters), expected, "Model::parameters()");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, TiedWeights,
                         testing::Values(Layout{"ddp", 1}, Layout{"ddp", 3}, Layout{"ddp_sharded", 2}, Layout{"dp", 2},
                                         Layout{"dp", 3}, Layout{"ddp2", 2, 2}),
                         [](const auto& layout) {
                           return layout.param.strategy + "_" + std::to_string(layout.param.devices) + "_" +
                                  std::to_string(layout.param.nodes);
                         });

TEST(TiedWeightsOracle, PythonsTorchGivesWhatWasRecorded) {
  const test::Python python = test::find_python();
  if (python.import.status != 0 && !python.is_asked_for) {
    GTEST_SKIP() << "python3 has no torch; LRUN_TEST_PYTHON may name one that has: " << python.import.output;
  }
  ASSERT_EQ(python.import.status, 0) << "LRUN_TEST_PYTHON has no torch: " << python.import.output;
  const test::Shell oracle = test::run_shell(python.command + "'" LRUN_TEST_SOURCE "/tied_weights_oracle.py'");
  ASSERT_EQ(oracle.status, 0) << oracle.output;
  std::istringstream lines(oracle.output);
  const Values printed = parse(lines);
  const Values recorded = recorded_values();
  ASSERT_EQ(printed.size(), recorded.size());
  for (const auto& [name, value] : recorded) {
    EXPECT_LE((printed.at(name) - value).abs().max().item<double>(), 1e-12) << name;
  }
}

TEST(TiedWeightsOfAWrappedModel, AreOneParameter) {
  run_layout({"ddp", 2}, [](Session& session) {
    const auto net = std::make_shared<TiedNet>();
    EXPECT_EQ(net->parameters().size(), 7U) << "LibTorch's own";
    {
      auto model = session.wrap(net);
      EXPECT_EQ(model.parameters().size(), 4U);
      EXPECT_EQ((*session.optimizer<optim::SGD>(model, sgd())).size(), 4U);
    }
    const DistributedDataParallel<TiedNet> ddp(net, session.collectives());
    EXPECT_EQ(ddp.parameters().size(), 4U);
  });
}

TEST(TiedWeightsOfAWrappedModel, AreNamedOnceByGuards) {
  std::string text;
  run_layout({"ddp", 2}, [&](Session& session) {
    const auto net = std::make_shared<TiedNet>();
    WrapOptions options;
    options.guards = GuardOptions{.name_unused_after = 1, .warn = [&](const std::string& warning) { text = warning; }};
    auto model = session.wrap(net, options);
    model.train_step(at::ones({2}, at::kDouble),
                     [](TiedNet& replica, const at::Tensor& part) { return (replica.bias[0] * part).sum(); });
  });
  EXPECT_EQ(text,
            "parameters 'head', 'first.weight', 'first.bias' got no gradient in the first 1 steps: not used in the "
            "loss?");
}

TEST(OptimizerGroups, HaveEachParameterOnce) {
  run_layout({"ddp", 1}, [](Session& session) {
    const auto net = std::make_shared<TiedNet>();
    auto model = session.wrap(net);
    const std::vector<optim::OptimizerParamGroup> groups = {{net->words->parameters()},
                                                            {{net->layer->weight, net->bias, net->layer->weight}}};
    auto optimizer = session.optimizer<optim::SGD>(groups, sgd());
    EXPECT_EQ((*optimizer).size(), 3U);
    const std::vector<optim::OptimizerParamGroup> overlapping = {{net->words->parameters()}, {net->parameters()}};
    try {
      auto refused = session.optimizer<optim::SGD>(overlapping, sgd());
      ADD_FAILURE() << "accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(),
                   "a parameter of shape [7, 4] is in groups 0 and 1 of the optimizer, and both would update it: leave "
                   "it out of one");
    }
  });
}

}  // namespace
}  // namespace lrun::detail
