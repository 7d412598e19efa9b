// An optimizer whose state is split over the ranks does what the same optimizer does in one piece.
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/session.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>
#include <torch/utils.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/support/small_training.h"

namespace lrun::detail {
namespace {

namespace nn = torch::nn;
namespace optim = torch::optim;

using test::expect_equal;
using test::run_strategy;
using Net = test::SmallNet;

/// `optimizer`'s steps begin … end−1.
template <class Optimizer>
void train(Model<Net>& model, Optimizer& optimizer, const Session& session, int begin, int end) {
  for (int step = begin; step < end; ++step) {
    optimizer.zero_grad();
    test::train_step(model, step, session);
    optimizer.step();
  }
}

/// The size of this rank's part of the state, in bytes of tensors as large as their parameter.
template <class ParamState>
std::int64_t state_bytes(const optim::Optimizer& optimizer);

template <>
std::int64_t state_bytes<optim::AdamParamState>(const optim::Optimizer& optimizer) {
  std::int64_t bytes = 0;
  for (const auto& [key, state] : optimizer.state()) {
    const auto& adam = dynamic_cast<const optim::AdamParamState&>(*state);
    bytes += static_cast<std::int64_t>(adam.exp_avg().nbytes() + adam.exp_avg_sq().nbytes());
  }
  return bytes;
}

template <>
std::int64_t state_bytes<optim::AdagradParamState>(const optim::Optimizer& optimizer) {
  std::int64_t bytes = 0;
  for (const auto& [key, state] : optimizer.state()) {
    bytes += static_cast<std::int64_t>(dynamic_cast<const optim::AdagradParamState&>(*state).sum().nbytes());
  }
  return bytes;
}

struct MomentumSgd {
  using Type = optim::SGD;
  static auto options() { return optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3); }
};
struct Adam {
  using Type = optim::Adam;
  static auto options() { return optim::AdamOptions(0.01).amsgrad(true); }
};
struct AdamW {
  using Type = optim::AdamW;
  static auto options() { return optim::AdamWOptions(0.01).weight_decay(0.1); }
};
struct RmsProp {
  using Type = optim::RMSprop;
  static auto options() { return optim::RMSpropOptions(0.01).momentum(0.5).centered(true); }
};
struct Adagrad {
  using Type = optim::Adagrad;
  static auto options() { return optim::AdagradOptions(0.05); }
};

template <class Kind>
class ShardedOptimizer : public testing::Test {};
using Kinds = testing::Types<MomentumSgd, Adam, AdamW, RmsProp, Adagrad>;
TYPED_TEST_SUITE(ShardedOptimizer, Kinds);

TYPED_TEST(ShardedOptimizer, EqualsTheWholeOneAndOneProcess) {
  using Type = typename TypeParam::Type;
  at::set_num_threads(1);
  const auto train_all = [](const std::string& strategy, int world_size) {
    std::vector<std::shared_ptr<Net>> nets(static_cast<std::size_t>(world_size));
    for (auto& net : nets) net = std::make_shared<Net>();
    run_strategy(strategy, world_size, [&](Session& session) {
      auto model = session.wrap(nets[static_cast<std::size_t>(session.rank())]);
      auto optimizer = session.optimizer<Type>(model, TypeParam::options());
      train(model, optimizer, session, 0, 20);
    });
    return nets;
  };
  const auto alone = train_all("ddp", 1);
  for (const int world_size : {1, 2, 3, 4}) {
    const auto whole = train_all("ddp", world_size);
    const auto sharded = train_all("ddp_sharded", world_size);
    for (const auto& net : sharded) {
      expect_equal(*net, *whole[0], 0);
      expect_equal(*net, *alone[0], 1e-6);
    }
  }
}

TYPED_TEST(ShardedOptimizer, IsSavedWholeAndGoesOnWithAnotherWorldSize) {
  using Type = typename TypeParam::Type;
  at::set_num_threads(1);
  const auto expected = std::make_shared<Net>();
  run_strategy("ddp", 1, [&](Session& session) {
    auto model = session.wrap(expected);
    auto optimizer = session.optimizer<Type>(model, TypeParam::options());
    train(model, optimizer, session, 0, 10);
  });

  std::string saved;
  const auto source = std::make_shared<Net>();
  run_strategy("ddp_sharded", 3, [&](Session& session) {
    auto net = session.is_rank_zero() ? source : std::make_shared<Net>();
    auto model = session.wrap(net);
    auto optimizer = session.optimizer<Type>(model, TypeParam::options());
    train(model, optimizer, session, 0, 5);
    torch::serialize::OutputArchive archive;
    optimizer.save(archive);
    if (!session.is_rank_zero()) return;
    std::ostringstream stream;
    archive.save_to(stream);
    saved = std::move(stream).str();
  });

  const auto resume = [&](const std::string& strategy, int world_size) {
    run_strategy(strategy, world_size, [&](Session& session) {
      auto net = std::make_shared<Net>();
      {
        const at::NoGradGuard no_grad;
        for (const auto& item : source->named_parameters()) net->named_parameters()[item.key()].copy_(item.value());
      }
      auto model = session.wrap(net);
      auto optimizer = session.optimizer<Type>(model, TypeParam::options());
      torch::serialize::InputArchive archive;
      archive.load_from(saved.data(), saved.size());
      world_size == 4 ? optimizer->load(archive) : optimizer.load(archive);  // torch's own may do it
      train(model, optimizer, session, 5, 10);
      SCOPED_TRACE(strategy + " with " + std::to_string(world_size) + " ranks");
      expect_equal(*net, *expected, 1e-6);
    });
  };
  resume("ddp_sharded", 2);
  resume("ddp_sharded", 4);
  resume("ddp_sharded", 1);
  resume("ddp", 2);
}

TEST(OptimizerShards, NeedAShareOfTheMemory) {
  std::vector<std::int64_t> parts(4);
  std::int64_t whole = 0;
  std::int64_t largest = 0;
  run_strategy("ddp_sharded", 4, [&](Session& session) {
    auto net = std::make_shared<Net>();
    auto model = session.wrap(net);
    auto optimizer = session.optimizer<optim::Adam>(model, 0.01);
    train(model, optimizer, session, 0, 1);
    parts[static_cast<std::size_t>(session.rank())] = state_bytes<optim::AdamParamState>(*optimizer);
    torch::serialize::OutputArchive archive;
    optimizer.save(archive, kAllRanks);
    EXPECT_EQ(state_bytes<optim::AdamParamState>(*optimizer), parts[static_cast<std::size_t>(session.rank())])
        << "the whole state is kept after saving";
    if (!session.is_rank_zero()) return;
    largest = 2 * static_cast<std::int64_t>(net->second->weight.nbytes());
    for (const auto& parameter : net->parameters()) {
      if (parameter.grad().defined()) whole += 2 * static_cast<std::int64_t>(parameter.nbytes());
    }
  });
  EXPECT_EQ(parts[0] + parts[1] + parts[2] + parts[3], whole);
  for (const auto part : parts) EXPECT_LE(part, std::max(whole / 4, largest));
}

TEST(OptimizerShards, DropStateThatTheOptimizerMadeAtOnce) {
  run_strategy("ddp_sharded", 2, [](Session& session) {
    auto net = std::make_shared<Net>();
    auto model = session.wrap(net);
    auto optimizer = session.optimizer<optim::Adagrad>(model, 0.01);
    std::int64_t own = 0;
    for (const auto& parameter : net->parameters()) {
      const bool mine = optimizer.shards()->owner(parameter) == session.rank();
      if (mine) own += static_cast<std::int64_t>(parameter.nbytes());
    }
    EXPECT_EQ(state_bytes<optim::AdagradParamState>(*optimizer), own);
  });
}

TEST(OptimizerShards, KeepParameterGroupsAndTakeUpLaterOnes) {
  std::vector<std::shared_ptr<Net>> nets;
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    nets.push_back(std::make_shared<Net>());
    run_strategy(strategy, 3, [&](Session& session) {
      auto net = session.is_rank_zero() ? nets.back() : std::make_shared<Net>();
      auto model = session.wrap(net);
      const std::vector<optim::OptimizerParamGroup> groups = {
          {net->first->parameters(), std::make_unique<optim::SGDOptions>(optim::SGDOptions(0.2).momentum(0.5))},
          optim::OptimizerParamGroup(net->second->parameters())};
      auto optimizer = session.optimizer<optim::SGD>(groups, optim::SGDOptions(0.05).momentum(0.9));
      train(model, optimizer, session, 0, 4);
      optimizer->add_param_group(optim::OptimizerParamGroup(net->last->parameters()));
      optimizer->param_groups()[0].options().set_lr(0.02);
      train(model, optimizer, session, 4, 8);
    });
  }
  expect_equal(*nets[1], *nets[0], 0);
}

TEST(OptimizerShards, SendParametersOfAnyTypeAndLayout) {
  struct Mixed : nn::Module {
    Mixed() {
      torch::manual_seed(2);
      for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
        parts.push_back(register_parameter("part" + std::to_string(parts.size()), at::randn({7, 3}).to(dtype)));
      }
      parts.push_back(register_parameter("turned", at::randn({3, 7}).t()));
      parts.push_back(register_parameter("large", at::randn({600, 1000})));  // more than is packed
    }
    std::vector<at::Tensor> parts;
  };
  std::vector<std::shared_ptr<Mixed>> nets;
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    nets.push_back(std::make_shared<Mixed>());
    run_strategy(strategy, 3, [&](Session& session) {
      auto net = session.is_rank_zero() ? nets.back() : std::make_shared<Mixed>();
      auto model = session.wrap(net);
      auto optimizer = session.optimizer<optim::SGD>(model, optim::SGDOptions(0.5).momentum(0.9));
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        model.train_step(at::ones({1}), [](Mixed& mixed, const at::Tensor&) {
          auto loss = at::zeros({1});
          for (const auto& part : mixed.parts) loss = loss + part.to(at::kFloat).square().mean();
          return loss;
        });
        optimizer.step();
      }
      for (const auto& part : net->parts) {
        EXPECT_TRUE(session.all_reduce(part.to(at::kDouble), ReduceOp::kMax).equal(part.to(at::kDouble)));
      }
    });
  }
  expect_equal(*nets[1], *nets[0], 0);
}

TEST(OptimizerShards, LeaveTheGradientsWhereTheyAre) {
  run_strategy("ddp_sharded", 2, [](Session& session) {
    auto net = std::make_shared<Net>();
    auto model = session.wrap(net);
    auto optimizer = session.optimizer<optim::SGD>(model, 0.1);
    test::train_step(model, 0, session);
    const auto before = net->first->weight.grad();
    optimizer.step();
    EXPECT_TRUE(net->first->weight.grad().is_same(before));
    EXPECT_TRUE(net->last->weight.grad().defined());
    EXPECT_FALSE(net->unused.grad().defined());
  });
}

TEST(OptimizerShards, RefuseLbfgsByName) {
  for (const int world_size : {1, 2}) {
    run_strategy("ddp_sharded", world_size, [](Session& session) {
      auto model = session.wrap(std::make_shared<Net>());
      try {
        const auto optimizer = session.optimizer<optim::LBFGS>(model, 0.1);
        FAIL() << "accepted";
      } catch (const Unsupported& error) {
        EXPECT_STREQ(error.what(),
                     "the state of LBFGS belongs to all parameters at once and cannot be split over ranks: use "
                     "strategy 'ddp', or another optimizer");
      }
    });
  }
}

TEST(OptimizerShards, RefuseGroupsThatDifferBetweenRanks) {
  run_strategy("ddp_sharded", 2, [](Session& session) {
    auto net = std::make_shared<Net>();
    auto model = session.wrap(net);
    std::vector<at::Tensor> some = {net->first->weight, net->last->weight};
    if (session.rank() == 1) std::swap(some[0], some[1]);
    try {
      const auto optimizer = session.optimizer<optim::SGD>({optim::OptimizerParamGroup(some)}, 0.1);
      FAIL() << "accepted";
    } catch (const RankMismatch& error) {
      EXPECT_STREQ(error.what(),
                   "the model differs between ranks: parameter 'group 0 number 0' is Double [24, 8], trained on rank "
                   "0, and parameter 'group 0 number 0' is Double [3, 16], trained on rank 1");
    }
  });
}

}  // namespace
}  // namespace lrun::detail
