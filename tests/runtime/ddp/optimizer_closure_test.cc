// An optimizer that evaluates the loss itself does on several ranks what torch's does in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/session.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/utils.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/support/backend_ranks.h"
#include "runtime/support/small_training.h"

namespace lrun::detail {
namespace {

namespace optim = torch::optim;

using test::SmallNet;

constexpr int kUpdates = 4;

optim::LBFGSOptions line_search() { return optim::LBFGSOptions(1).max_iter(5).line_search_fn("strong_wolfe"); }

at::Tensor loss_of_rows(SmallNet& net, std::int64_t begin, std::int64_t rows) {
  const auto output = net.forward(test::wave(0.7, 8).narrow(0, begin, rows));
  return at::mse_loss(output, test::wave(1.3, 3).narrow(0, begin, rows));
}

/// Ranks may be threads, and share the generator that gives the parameters their values.
std::shared_ptr<SmallNet> new_net() {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  return std::make_shared<SmallNet>();
}

struct Result {
  std::shared_ptr<SmallNet> net = new_net();
  std::vector<double> losses;  // what each step() returned
};

/// Torch's own optimizer on the whole batch.
template <class TorchOptimizer, class Options>
Result train_by_torch(const Options& options) {
  Result result;
  TorchOptimizer optimizer(result.net->parameters(), options);
  for (int update = 0; update < kUpdates; ++update) {
    const at::Tensor loss = optimizer.step([&] {
      optimizer.zero_grad();
      at::Tensor of_batch = loss_of_rows(*result.net, 0, test::kSmallBatch);
      of_batch.backward();
      return of_batch;
    });
    result.losses.push_back(loss.item<double>());
  }
  return result;
}

/// This rank's part of the same training.
template <class TorchOptimizer>
Result train_rank(Model<SmallNet>& model, Optimizer<TorchOptimizer> optimizer, int rank, int world_size) {
  Result result{.net = model.module(), .losses = {}};
  const std::int64_t part = test::kSmallBatch / world_size;
  for (int update = 0; update < kUpdates; ++update) {
    const at::Tensor loss = optimizer.step([&] {
      optimizer.zero_grad();
      return model.train_step(at::full({part}, rank),
                              [&](SmallNet& net, const at::Tensor&) { return loss_of_rows(net, rank * part, part); });
    });
    result.losses.push_back(loss.item<double>());
  }
  return result;
}

/// \throws std::runtime_error  the trainings differ by more than rounding.
void require_equal_training(const Result& actual, const Result& expected) {
  for (std::size_t update = 0; update < expected.losses.size(); ++update) {
    const double difference = std::abs(actual.losses.at(update) - expected.losses[update]);
    testing::require(difference <= 1e-9, "loss of update " + std::to_string(update) + ": " +
                                             std::to_string(actual.losses[update]) + ", not " +
                                             std::to_string(expected.losses[update]));
  }
  for (const auto& item : expected.net->named_parameters()) {
    const double difference = (actual.net->named_parameters()[item.key()] - item.value()).abs().max().item<double>();
    testing::require(difference <= 1e-9, item.key() + " differs by " + std::to_string(difference));
  }
}

/// \throws std::runtime_error  the parameters of the ranks differ in a bit.
void require_equal_ranks(const SmallNet& net, Collectives& group) {
  const at::NoGradGuard no_grad;
  for (const auto& item : net.named_parameters()) {
    at::Tensor all = at::empty({group.world_size(), item.value().numel()}, item.value().options());
    group.all_gather(all, item.value().detach().flatten());
    for (int rank = 1; rank < group.world_size(); ++rank) testing::require_equal(all[rank], all[0], item.key());
  }
}

class OptimizerClosure : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void expect_all_well(const testing::RankBody& body) {
    const auto [backend, world_size] = GetParam();
    const auto errors = testing::run_ranks(backend, world_size, body);
    for (std::size_t rank = 0; rank < errors.size(); ++rank) EXPECT_EQ(errors[rank], "") << "rank " << rank;
  }
};

Model<SmallNet> model_of(Collectives& group) {
  at::set_num_threads(1);
  auto net = new_net();
  return {net, std::make_unique<ReplicatedModule>(net, group, WrapOptions()), at::kCPU};
}

TEST_P(OptimizerClosure, LbfgsEqualsTorchsOnTheWholeBatch) {
  expect_all_well([](Collectives& group) {
    auto model = model_of(group);
    const auto result = train_rank(model, Optimizer<optim::LBFGS>(model.parameters(), line_search(), &group, false),
                                   group.rank(), group.world_size());
    require_equal_training(result, train_by_torch<optim::LBFGS>(line_search()));
    require_equal_ranks(*result.net, group);
  });
}

TEST_P(OptimizerClosure, ASplitOptimizerEqualsTorchs) {
  expect_all_well([](Collectives& group) {
    const optim::AdamOptions options(0.01);
    auto model = model_of(group);
    const auto result = train_rank(model, Optimizer<optim::Adam>(model.parameters(), options, &group, true),
                                   group.rank(), group.world_size());
    require_equal_training(result, train_by_torch<optim::Adam>(options));
    require_equal_ranks(*result.net, group);
  });
}

TEST_P(OptimizerClosure, ReturnsTheMeanOfTheRanksLosses) {
  expect_all_well([](Collectives& group) {
    at::set_num_threads(1);
    at::Tensor parameter = at::zeros({1}).requires_grad_();
    Optimizer<optim::Adam> optimizer(std::vector<at::Tensor>{parameter}, optim::AdamOptions(0), &group, false);
    const at::NoGradGuard no_grad;  // as around torch's own step()
    const at::Tensor loss = optimizer.step([&] {
      testing::require(at::GradMode::is_enabled(), "the closure computes gradients");
      return (parameter + group.rank()).sum();
    });
    testing::require_equal(loss, at::full({}, (group.world_size() - 1) / 2.0, at::kFloat), "the mean");
    testing::require(!loss.requires_grad(), "the loss is detached");
  });
}

TEST_P(OptimizerClosure, FailsOnAllRanksIfOneEvaluatesTheLossMoreOften) {
  const auto [backend, world_size] = GetParam();
  const auto errors = testing::run_ranks(backend, world_size, [](Collectives& group) {
    auto model = model_of(group);
    const auto part = test::kSmallBatch / group.world_size();
    Optimizer<optim::LBFGS> optimizer(model.parameters(), optim::LBFGSOptions(0.1).max_iter(group.rank() == 1 ? 3 : 2),
                                      &group, false);
    for (int update = 0; update < 2; ++update) {
      optimizer.step([&] {
        optimizer.zero_grad();
        return model.train_step(at::full({part}, group.rank()), [&](SmallNet& net, const at::Tensor&) {
          return loss_of_rows(net, group.rank() * part, part);
        });
      });
    }
  });
  const std::string expected =
      world_size == 1 ? ""
                      : "CollectiveMismatch: step(closure): rank 0 is in evaluation 1 of update 2, but rank 1 in "
                        "evaluation 3 of update 1: the ranks' optimizers decided differently; give them equal options, "
                        "processors and numbers of threads";
  EXPECT_THAT(errors, ::testing::Each(expected));
}

INSTANTIATE_TEST_SUITE_P(Single, OptimizerClosure,
                         ::testing::Combine(::testing::Values("single"), ::testing::Values(1)), testing::name_of_group);
INSTANTIATE_TEST_SUITE_P(Groups, OptimizerClosure,
                         ::testing::Combine(::testing::Values("threads", "shm", "gloo", "shm+gloo"),
                                            ::testing::Values(2, 3)),
                         testing::name_of_group);

TEST(OptimizerStep, RefusesAClosureWithoutALoss) {
  Optimizer<optim::Adam> optimizer(std::vector<at::Tensor>{at::ones({2}).requires_grad_()}, optim::AdamOptions(0.1));
  EXPECT_EQ(testing::error_of([&] { optimizer.step([] { return at::Tensor(); }); }),
            "invalid_argument: the closure of step() returned no loss");
  EXPECT_EQ(testing::error_of([&] { optimizer.step([] { return at::ones({2}); }); }),
            "invalid_argument: the closure of step() returned a loss of 2 elements, not of one");
}

TEST(OptimizerStep, FailsOnAllRanksIfOneEvaluatesTheLossLessOften) {
  const auto errors = testing::run_ranks("threads", 2, [](Collectives& group) {
    at::Tensor parameter = at::ones({1}).requires_grad_();
    Optimizer<optim::Adam> optimizer(std::vector<at::Tensor>{parameter}, optim::AdamOptions(0.1), &group, false);
    optimizer.step([&] { return parameter.sum(); });
    if (group.rank() == 0) optimizer.step([&] { return parameter.sum(); });
    group.barrier();
  });
  for (const auto& error : errors) {
    EXPECT_THAT(error, ::testing::HasSubstr("rank 0 called all_gather #2 of float64[3], but rank 1 called barrier #2"));
  }
}

}  // namespace
}  // namespace lrun::detail
