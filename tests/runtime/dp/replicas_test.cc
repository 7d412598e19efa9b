// How replicas follow their module, and which of their changes the module keeps.
#include "lrun/replicas.h"

#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/sync_batch_norm.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "runtime/support/dp_session.h"

namespace lrun::detail {
namespace {

namespace nn = torch::nn;
using test::dp_session;
using test::expect_close;
using test::forward;
using test::make_batch;
using test::Net;
using test::NetImpl;

TEST(Replicas, LeaveTheModuleTheBuffersOfItsOwnPart) {
  const auto session = dp_session(2);
  Net net;
  auto model = session->wrap(net);
  const auto batch = make_batch(8);
  const auto step = [](NetImpl& replica, const at::Tensor& part) {
    EXPECT_EQ(replica.norm->running_mean[0].item<double>(), replica.norm->running_mean[1].item<double>())
        << "not what the module had";
    return replica.norm(part);
  };
  net->norm->running_mean.fill_(3);
  model.train_step(batch, step, [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
  expect_close(net->norm->running_mean, 3 * 0.9 + 0.1 * batch.narrow(0, 0, 4).mean(0), "running mean");
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 1);
  net->norm->running_mean.fill_(5);  // replicas follow
  model.train_step(batch, step, [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
}

TEST(Replicas, HaveTheRunningStatisticsOfTheModule) {
  const auto session = dp_session(2);
  Net net;
  auto model = session->wrap(net);
  const auto batch = make_batch(8);
  const auto sum = [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); };
  for (int step = 0; step < 2; ++step) model.train_step(batch, forward, sum);
  const auto have_the_same = [&](NetImpl& replica, const at::Tensor& part) {
    EXPECT_TRUE(replica.norm->running_mean.equal(net->norm->running_mean));
    EXPECT_TRUE(replica.norm->running_var.equal(net->norm->running_var));
    return part;
  };
  net->eval();
  model.eval_step(batch, have_the_same);
  net->norm->running_mean.variable_data().fill_(7);  // as a broadcast does: no version tells of it
  model.eval_step(batch, have_the_same);
}

TEST(Replicas, FollowTheModule) {
  const auto session = dp_session(2);
  Net net;
  auto model = session->wrap(net);
  const auto batch = make_batch(4);
  const auto expect_same = [&](const std::string& when) {
    expect_close(model.eval_step(batch, forward), net->forward(batch), when);
  };
  expect_same("wrapped");
  {
    const at::NoGradGuard no_grad;
    net->layer->weight.mul_(2);
    expect_same("changed in place");
    net->layer->weight.set_data(net->layer->weight * 2);  // as torch::load does
    expect_same("given other memory");
  }
  net->eval();
  net->norm->train();
  model.eval_step(batch, [](NetImpl& replica, const at::Tensor& part) {
    EXPECT_FALSE(replica.is_training());
    EXPECT_FALSE(replica.layer->is_training());
    EXPECT_TRUE(replica.norm->is_training());
    return part;
  });
  net->layer->bias.set_requires_grad(false);
  model.train_step(batch, forward, [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
  EXPECT_FALSE(net->layer->bias.grad().defined());
}

struct Regularised : nn::Module {
  Regularised() {
    drop = register_module("drop", nn::Dropout(0.5));
    norm = register_module("norm", nn::BatchNorm1d(4));
    lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(4, 4).num_layers(2).dropout(0.5).batch_first(true)));
    to(at::kDouble);
  }
  nn::Dropout drop{nullptr};
  nn::BatchNorm1d norm{nullptr};
  nn::LSTM lstm{nullptr};
};

TEST(Replicas, HaveTheOptionsOfTorchsModules) {
  const auto session = dp_session(2);
  const auto net = std::make_shared<Regularised>();
  net->drop->options.p(0);
  net->norm->options.eps(3);
  net->lstm->options.dropout(0);
  auto model = session->wrap(net);
  const auto batch = make_batch(8);
  const auto dropped = [](Regularised& replica, const at::Tensor& part) { return replica.drop(part); };
  EXPECT_TRUE(model.eval_step(batch, dropped).equal(batch)) << "0.5 of the constructor, not 0";
  const auto recurrent = [](Regularised& replica, const at::Tensor& part) {
    return std::get<0>(replica.lstm(part.unsqueeze(1)));
  };
  expect_close(model.eval_step(batch, recurrent), recurrent(*net, batch), "LSTM without dropout");
  net->drop->options.p(1);  // during training, too
  EXPECT_FALSE(model.eval_step(batch, dropped).any().item<bool>());
  net->eval();
  const auto normed = [](Regularised& replica, const at::Tensor& part) { return replica.norm(part); };
  expect_close(model.eval_step(batch, normed), net->norm(batch), "eps");
}

/// The classes that LibTorch's headers declare, without the templates behind them, and those that have no options.
std::set<std::string> classes_with_options() {
  const std::set<std::string> without = {
      "Functional", "Identity", "LogSigmoid", "M",         "Mish",     "ModuleDict", "ModuleList", "ParameterDict",
      "Sequential", "SiLU",     "Sigmoid",    "Softmax2d", "Softsign", "Tanh",       "Tanhshrink", "ParameterList"};
  const std::regex declaration(R"((?:class|struct) (?:TORCH_API )?(\w+)Impl\s*:)");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LRUN_TEST_TORCH_MODULES)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end; ++found) {
      names.insert((*found)[1]);
    }
  }
  const std::set<std::string> all = names;
  std::erase_if(names, [&](const std::string& name) {
    return without.contains(name) || name.ends_with("Nd") || all.contains(name + "1d");
  });
  return names;
}

TEST(Replicas, HaveTheOptionsOfEveryClassThatHasSome) {
  std::ifstream file(LRUN_TEST_SOURCE "/../../../src/runtime/dp/module_options.cc");
  const std::string table{std::istreambuf_iterator<char>(file), {}};
  const auto names = classes_with_options();
  EXPECT_GT(names.size(), 100U);
  for (const std::string& name : names) {
    EXPECT_NE(table.find("nn::" + name + "Impl"), std::string::npos) << name;
  }
}

TEST(Replicas, DropDifferentUnitsAndTheSameInEveryRun) {
  at::Tensor first;
  for (int run = 0; run < 2; ++run) {
    const auto session = dp_session(3);
    nn::Sequential net(nn::Dropout(0.5));
    auto model = session->wrap(net);
    torch::manual_seed(7);
    at::Tensor all;
    for (int step = 0; step < 2; ++step) {
      const auto kept = model.eval_step(at::ones({3, 64}), [](nn::SequentialImpl& replica, const at::Tensor& part) {
        return replica.forward(part) + 10 * at::rand_like(part) + at::bernoulli(part / 2);
      });
      all = step == 0 ? kept : at::cat({all, kept});
    }
    for (std::int64_t row = 1; row < all.size(0); ++row) EXPECT_FALSE(all[row].equal(all[0])) << "row " << row;
    if (run == 0) first = all;
    EXPECT_TRUE(all.equal(first)) << "another run, other numbers";
  }
}

TEST(Replicas, AreMadeWithoutTheProgramsRandomNumbers) {
  const auto session = dp_session(4);
  Net net;
  torch::manual_seed(1);
  const auto expected = at::rand({4});
  torch::manual_seed(1);
  auto model = session->wrap(net);
  EXPECT_TRUE(at::rand({4}).equal(expected));
}

struct Graph : nn::Module {
  Graph() { edges = register_buffer("edges", at::eye(4, at::kDouble).to_sparse()); }
  at::Tensor edges;
};

TEST(Replicas, HaveSparseBuffers) {
  const auto session = dp_session(2);
  const auto net = std::make_shared<Graph>();
  auto model = session->wrap(net);
  const auto batch = make_batch(4);
  for (const double factor : {1.0, 3.0}) {
    const at::NoGradGuard no_grad;
    net->edges.mul_(factor);
    const auto outputs = model.eval_step(
        batch, [](Graph& replica, const at::Tensor& part) { return at::mm(part, replica.edges.to_dense()); });
    expect_close(outputs, batch * factor, "edges");
  }
}

TEST(Replicas, CannotShareASyncBatchNorm) {
  const auto session = dp_session(2);
  try {
    auto model = session->wrap(nn::Sequential(lrun::nn::SyncBatchNorm(4)));
    ADD_FAILURE() << "accepted";
  } catch (const Unsupported& error) {
    EXPECT_STREQ(error.what(),
                 "submodule '0' is a SyncBatchNorm, which cannot see the parts of a batch in other replicas: use "
                 "BatchNorm under dp and ddp2, or strategy 'ddp'");
  }
}

struct Sized : nn::Module {
  explicit Sized(std::int64_t width) { layer = register_module("layer", nn::Linear(4, width)); }
  nn::Linear layer{nullptr};
};

TEST(Replicas, SayWhatAModuleNeedsToHaveThem) {
  const auto session = dp_session(2);
  const auto refusal = [&](const ModuleMaker& maker) -> std::string {
    try {
      auto model = session->wrap(std::make_shared<Sized>(5), WrapOptions{.make_replica = maker});
      return "accepted";
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  EXPECT_NE(
      refusal(nullptr).find("Sized' cannot be made: it has neither clone() (derive from torch::nn::Cloneable) nor "
                            "a default constructor, and WrapOptions::make_replica is not given"),
      std::string::npos)
      << refusal(nullptr);
  EXPECT_EQ(refusal([] { return std::make_shared<Sized>(5); }), "accepted");
  EXPECT_NE(refusal([] { return std::make_shared<NetImpl>(); }).find("cannot be a '"), std::string::npos);
  EXPECT_EQ(refusal([] { return std::shared_ptr<Sized>(); }), "WrapOptions::make_replica returned nothing");
}

struct ByDefault : nn::Module {
  explicit ByDefault(std::int64_t width = 3) { layer = register_module("layer", nn::Linear(4, width)); }
  nn::Linear layer{nullptr};
};

TEST(Replicas, AreRefusedWhereTheDefaultConstructorMakesAnotherSize) {
  const auto session = dp_session(2);
  EXPECT_NO_THROW((void)session->wrap(std::make_shared<ByDefault>()));
  try {
    (void)session->wrap(std::make_shared<ByDefault>(5));
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("its 'layer.weight' is [3, 4], and the module's [5, 4]; a default constructor does not repeat "
                        "the arguments of the module's: give WrapOptions{.make_replica = [=] { return "
                        "std::make_shared<"),
              std::string::npos)
        << text;
  }
  const ModuleMaker make = [] { return std::make_shared<ByDefault>(5); };
  EXPECT_NO_THROW((void)session->wrap(std::make_shared<ByDefault>(5), WrapOptions{.make_replica = make}));
}

TEST(Replicas, MayHaveAnotherDtypeThanTheModuleWasGiven) {
  const auto session = dp_session(2);
  const auto net = std::make_shared<ByDefault>();
  net->to(at::kDouble);
  auto model = session->wrap(net);
  const auto batch = make_batch(4);
  const auto step = [](ByDefault& replica, const at::Tensor& part) { return replica.layer(part); };
  EXPECT_TRUE(model.eval_step(batch, step).allclose(net->layer(batch)));
}

struct Prototype : nn::Cloneable<Prototype> {
  explicit Prototype(std::int64_t wide) : width(wide) { reset(); }
  void reset() override { layer = register_module("layer", nn::Linear(4, width)); }
  std::int64_t width;
  nn::Linear layer{nullptr};
};

TEST(Replicas, AreClonesWhereThereIsClone) {
  const auto session = dp_session(2);
  const auto net = std::make_shared<Prototype>(6);
  auto model = session->wrap(net);
  const auto batch = make_batch(4).to(at::kFloat);
  const auto outputs = model.eval_step(
      batch, [](Prototype& replica, const at::Tensor& part) { return replica.layer(part) + replica.width; });
  EXPECT_TRUE(outputs.allclose(net->layer(batch) + 6));
}

/// The warning of a session under dp about a module's replicas.
template <class Module>
std::string words_about(const std::shared_ptr<Module>& module, const WrapOptions& options = {}) {
  SessionOptions session_options = test::options_of({"dp", 2}, 0);
  session_options.banner = true;
  testing::internal::CaptureStderr();
  {
    Session session(std::move(session_options));
    auto model = session.wrap(module, options);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  return text.substr(std::min(text.find('\n') + 1, text.size()));  // behind the banner
}

TEST(Replicas, AreToldOfWhereAConstructorMadeThem) {
  const std::string warning = words_about(std::make_shared<ByDefault>());
  EXPECT_TRUE(warning.starts_with("lrun: warning: replicas of '")) << warning;
  EXPECT_TRUE(
      warning.ends_with("ByDefault' are made by its default constructor, so that members which were set afterwards are "
                        "not in them; derive it from torch::nn::Cloneable, or give WrapOptions::make_replica\n"))
      << warning;
  EXPECT_EQ(words_about(std::make_shared<ByDefault>(),
                        WrapOptions{.make_replica = [] { return std::make_shared<ByDefault>(); }}),
            "");
  EXPECT_EQ(words_about(std::make_shared<Prototype>(6)), "");
  EXPECT_EQ(words_about(nn::Sequential(nn::Linear(2, 2), nn::Dropout()).ptr()), "");
}

struct Choice : nn::Module {
  explicit Choice(bool relu = false) {
    if (relu) register_module("activation", nn::ReLU());
    if (!relu) register_module("activation", nn::Tanh());
  }
};

struct MaybeTied : nn::Module {
  explicit MaybeTied(bool tied = true) {
    const at::Tensor in = register_parameter("in", at::ones({2}));
    register_parameter("out", tied ? in : at::ones({2}));
  }
};

TEST(Replicas, AreRefusedWhereTheConstructorMakesAnotherStructure) {
  const auto session = dp_session(2);
  const auto refusal = [&](const auto& module) -> std::string {
    try {
      auto model = session->wrap(module);
      return "accepted";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal(std::make_shared<Choice>()), "accepted");
  const std::string other_class = refusal(std::make_shared<Choice>(true));
  EXPECT_NE(other_class.find("its 'activation' is a 'torch::nn::TanhImpl', and the module's a 'torch::nn::ReLUImpl'; "
                             "give WrapOptions::make_replica"),
            std::string::npos)
      << other_class;
  EXPECT_EQ(refusal(std::make_shared<MaybeTied>()), "accepted");
  const std::string tied = refusal(std::make_shared<MaybeTied>(false));
  EXPECT_NE(tied.find("its 'out' is tied to 'in'; give WrapOptions::make_replica"), std::string::npos) << tied;
}

struct Tied : nn::Module {
  Tied() {
    in = register_parameter("in", at::ones({4, 4}, at::kDouble));
    out = register_parameter("out", in);
  }
  at::Tensor in, out;
};

TEST(Replicas, CountTiedParametersOnce) {
  const auto session = dp_session(2);
  const auto net = std::make_shared<Tied>();
  auto model = session->wrap(net);
  model.train_step(
      make_batch(2),
      [](Tied& replica, const at::Tensor& part) { return at::ones_like(part).mm(replica.in) * replica.out[0]; },
      [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
  // d/dw of Σ over two samples and four columns of 4·in·out at ones: 2 a column through in, 2·4 of the first row by
  // out.
  EXPECT_EQ(net->in.grad()[0][0].item<double>(), 2 + 8);
  EXPECT_EQ(net->in.grad()[1][0].item<double>(), 2);
}

}  // namespace
}  // namespace lrun::detail
