// A program that resumes: load() of a module and its optimizer after they were wrapped, under every strategy.
#include <gtest/gtest.h>
#include <lrun/session.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>

#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/support/layout.h"
#include "runtime/support/repeatable_net.h"

namespace lrun::detail {
namespace {

using test::Layout;
using test::RepeatableNet;
using test::run_layout;

constexpr int kSaved = 2;
constexpr int kLast = 5;

struct ResumableTraining {
  explicit ResumableTraining(Session& session)
      : net(std::make_shared<RepeatableNet>()),
        model(session.wrap(net)),
        optimizer(session.optimizer<torch::optim::Adam>(model, torch::optim::AdamOptions(0.05))),
        rank(session.rank()),
        ranks(session.world_size()) {}

  void step(int number) {
    optimizer.zero_grad();
    const at::Tensor whole = at::sin(at::arange(48, at::kDouble) * (0.7 + 0.01 * number)).view({12, 4});
    model.train_step(
        whole.tensor_split(ranks)[static_cast<std::size_t>(rank)],
        [](RepeatableNet& replica, const at::Tensor& part) { return replica.forward(part); },
        [](const at::Tensor& outputs, const at::Tensor&) { return outputs.square().mean(); });
    optimizer.step();
  }

  std::shared_ptr<RepeatableNet> net;
  Model<RepeatableNet> model;
  Optimizer<torch::optim::Adam> optimizer;
  int rank;
  int ranks;
};

/// As a program writes and reads it: torch::save() of each.
struct Archives {
  explicit Archives(ResumableTraining& training) {
    torch::save(training.net, net);
    torch::save(training.optimizer, optimizer);
  }
  void load_into(ResumableTraining& training) {
    torch::load(training.net, net);
    torch::load(training.optimizer, optimizer);
  }

  std::stringstream net;
  std::stringstream optimizer;
};

class Load : public testing::TestWithParam<Layout> {};
/// Alone there are no buckets: as without lrun.
class LoadOfRanks : public Load {};

TEST_P(Load, GoesOnAfterTheModuleWasWrapped) {
  run_layout(GetParam(), [](Session& session) {
    ResumableTraining first(session);
    for (int step = 0; step < kSaved; ++step) first.step(step);
    Archives saved(first);
    for (int step = kSaved; step < kLast; ++step) first.step(step);
    ResumableTraining second(session);
    second.step(11);  // hooks, buckets and replicas know the values that are replaced
    const std::vector<at::Tensor> wrapped = second.net->parameters();
    saved.load_into(second);
    for (int step = kSaved; step < kLast; ++step) second.step(step);
    const auto parameters = second.net->parameters();
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      EXPECT_TRUE(parameters[index].is_same(wrapped[index]));
      EXPECT_TRUE(parameters[index].equal(first.net->parameters()[index])) << index;
    }
    EXPECT_TRUE(second.net->seen.equal(first.net->seen));
  });
}

void expect_refusal(ResumableTraining& training, const std::string& text) {
  try {
    training.step(1);
    ADD_FAILURE() << "accepted";
  } catch (const std::logic_error& error) {
    EXPECT_EQ(error.what(), text);
  }
}

TEST_P(LoadOfRanks, GoesOnWithAModuleThatWasConvertedAndBack) {
  run_layout(GetParam(), [](Session& session) {
    ResumableTraining training(session);
    training.step(0);
    training.net->to(at::kFloat);
    expect_refusal(training,
                   "parameter 'first.weight' was Double when the module was wrapped and is Float now, by to() or by "
                   "load() of an archive: convert it back with module->to(torch::kDouble)");
    training.net->to(at::kDouble);
    training.step(1);
    EXPECT_TRUE(training.net->first->weight.grad().defined());
  });
}

/// The names of RepeatableNet.
struct WiderNet : torch::nn::Module {
  WiderNet() {
    first = register_module("first", torch::nn::Linear(4, 16));
    last = register_module("last", torch::nn::Linear(16, 2));
    seen = register_buffer("seen", at::zeros({1}));
    to(at::kDouble);
  }

  torch::nn::Linear first{nullptr}, last{nullptr};
  at::Tensor seen;
};

TEST_P(LoadOfRanks, RefusesAnArchiveOfAnotherModel) {
  run_layout(GetParam(), [](Session& session) {
    ResumableTraining training(session);
    std::stringstream bytes;
    torch::save(std::make_shared<WiderNet>(), bytes);
    torch::load(training.net, bytes);
    expect_refusal(training,
                   "parameter 'first.weight' was [8, 4] when the module was wrapped and is [16, 4] now, by to() or by "
                   "load() of an archive: load one of this model");
  });
}

std::string name_of(const testing::TestParamInfo<Layout>& test_case) {
  const Layout& layout = test_case.param;
  return layout.strategy + "_" + std::to_string(layout.devices) + "_on_" + std::to_string(layout.nodes);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Load,
                         testing::Values(Layout{"ddp", 1, 1}, Layout{"ddp", 2, 1}, Layout{"ddp_sharded", 2, 1},
                                         Layout{"dp", 3, 1}, Layout{"ddp2", 2, 2}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Strategies, LoadOfRanks,
                         testing::Values(Layout{"ddp", 2, 1}, Layout{"ddp_sharded", 2, 1}, Layout{"ddp2", 2, 2}),
                         name_of);

}  // namespace
}  // namespace lrun::detail
