#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/error.h>
#include <lrun/join.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lrun/guards.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

using test::run_sessions;

struct GuardedNet : torch::nn::Module {
  GuardedNet() {
    used = register_module("used", torch::nn::Linear(4, 1));
    spare = register_module("spare", torch::nn::Linear(4, 1));
    at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) parameter.fill_(0.5);
  }
  at::Tensor forward(const at::Tensor& input) { return used(input); }
  torch::nn::Linear used{nullptr}, spare{nullptr};
};

/// Warnings of rank 0.
class Heard {
 public:
  std::function<SessionOptions(int)> options(GuardOptions guards = {}) {
    return [this, guards](int) {
      SessionOptions options{.banner = false};
      options.guards = guards;
      options.guards.warn = [this](const std::string& text) {
        const std::lock_guard lock(mutex_);
        texts_.push_back(text);
      };
      return options;
    };
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

/// A training whose batches come from `batch_of(rank, step)`; `after_step` may do harm. Steps count from 1.
template <class BatchOf, class AfterStep>
void train(Session& session, int steps, BatchOf batch_of, AfterStep after_step) {
  auto net = std::make_shared<GuardedNet>();
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.01);
  for (int step = 1; step <= steps; ++step) {
    optimizer.zero_grad();
    model.train_step(at::full({2, 4}, batch_of(session.rank(), step)),
                     [](GuardedNet& replica, const at::Tensor& part) { return replica.used(part).mean(); });
    optimizer.step();
    after_step(*net, step);
  }
}

/// The same in the program's own loop: in the classic form, or over the module that was wrapped.
enum class Loop { kClassic, kWrapped };

template <class BatchOf, class AfterStep>
void train_in_own_loop(Loop loop, Session& session, const GuardOptions& guards, int steps, BatchOf batch_of,
                       AfterStep after_step) {
  auto net = std::make_shared<GuardedNet>();
  std::optional<DistributedDataParallel<GuardedNet>> classic;
  std::optional<Model<GuardedNet>> wrapped;
  if (loop == Loop::kClassic) classic.emplace(net, session.collectives(), WrapOptions{.guards = guards});
  if (loop == Loop::kWrapped) wrapped.emplace(session.wrap(net, WrapOptions{.guards = guards}));
  torch::optim::SGD optimizer(net->parameters(), 0.01);
  for (int step = 1; step <= steps; ++step) {
    optimizer.zero_grad();
    const auto batch = at::full({2, 4}, batch_of(session.rank(), step));
    (classic ? classic->forward(batch) : (*wrapped)->forward(batch)).mean().backward();
    optimizer.step();
    after_step(*net, step);
  }
}

double other_for_all(int rank, int step) { return rank + 0.01 * step; }
void no_harm(GuardedNet&, int) {}

TEST(Guards, NameRanksWithIdenticalBatchesOnce) {
  Heard heard;
  const auto same_for_two = [](int rank, int step) { return (rank == 1 ? 0.5 : 0.25) + step; };
  run_sessions(
      3, [&](Session& session) { train(session, 10, same_for_two, no_harm); }, heard.options());
  EXPECT_EQ(heard.texts(),
            (std::vector<std::string>{"ranks 0, 2 got identical batches in the first 3 steps, so that they do the same "
                                      "work: read through session.loader(), or give each rank its own part"}));
}

TEST(Guards, SayNothingOfBatchesThatAreAlikeOnceOrAreNotCompared) {
  Heard heard;
  const auto same_at_first = [](int rank, int step) { return step < 3 ? 1.0 : rank; };
  run_sessions(
      2, [&](Session& session) { train(session, 5, same_at_first, no_harm); }, heard.options());
  const auto always_same = [](int, int) { return 1.0; };
  run_sessions(
      2, [&](Session& session) { train(session, 5, always_same, no_harm); }, heard.options({.compare_batches_for = 0}));
  EXPECT_EQ(heard.texts(), std::vector<std::string>());
}

/// The warning or error of each rank when `harm(net, rank)` was done after the first step.
std::vector<std::string> with_harm(const std::function<void(GuardedNet&, int)>& harm, Heard& heard,
                                   GuardOptions guards = {}) {
  std::mutex mutex;
  std::vector<std::string> errors;
  run_sessions(
      3,
      [&](Session& session) {
        try {
          train(session, 7, other_for_all, [&](GuardedNet& net, int step) {
            at::NoGradGuard no_grad;
            if (step == 1) harm(net, session.rank());
          });
        } catch (const RankMismatch& error) {
          const std::lock_guard lock(mutex);
          errors.emplace_back(error.what());
        }
      },
      heard.options(guards));
  return errors;
}

/// The same when rank 2 changes an element of a parameter by `change`.
std::vector<std::string> with_a_change(double change, Heard& heard, GuardOptions guards = {}) {
  const auto harm = [change](GuardedNet& net, int rank) {
    if (rank == 2) net.spare->weight[0][1] += change;
  };
  return with_harm(harm, heard, guards);
}

TEST(Guards, RefuseParametersThatAreNotTheSameOnAllRanks) {
  Heard heard;
  EXPECT_EQ(with_a_change(0.5, heard),
            std::vector<std::string>(3,
                                     "parameter 'spare.weight' is not the same on all ranks after the first update: "
                                     "rank 2 differs from rank 0, by up to 1 of its largest element on some rank; "
                                     "something changes parameters on some ranks only"));
  EXPECT_EQ(with_a_change(std::numeric_limits<double>::quiet_NaN(), heard).size(), 3U);
  EXPECT_EQ(with_a_change(0.5, heard, {.compare_parameters_every = 0}), std::vector<std::string>());
  EXPECT_EQ(heard.texts(), std::vector<std::string>());
}

TEST(Guards, WarnOnceOfParametersThatDriftApart) {
  Heard heard;
  EXPECT_EQ(with_a_change(1e-6, heard, {.compare_parameters_every = 3}), std::vector<std::string>());
  ASSERT_EQ(heard.texts().size(), 1U);
  EXPECT_NE(heard.texts()[0].find("'spare.weight'"), std::string::npos) << heard.texts()[0];
  EXPECT_NE(heard.texts()[0].find("rank 2 differs from rank 0"), std::string::npos) << heard.texts()[0];
}

TEST(Guards, RefuseAParameterBehindOneThatDrifts) {
  Heard heard;
  const auto harm = [](GuardedNet& net, int rank) {
    if (rank != 2) return;
    net.spare->weight[0][1] += 1e-6;
    net.spare->bias += 0.5;
  };
  const auto errors = with_harm(harm, heard);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_NE(errors[0].find("'spare.bias' is not the same"), std::string::npos) << errors[0];
  EXPECT_EQ(heard.texts(), std::vector<std::string>());
}

TEST(Guards, TakeTheSignOfZeroForDrift) {
  Heard heard;
  const auto harm = [](GuardedNet& net, int rank) { net.spare->bias.fill_(rank == 2 ? -0.0 : 0.0); };
  EXPECT_EQ(with_harm(harm, heard), std::vector<std::string>());
  EXPECT_EQ(heard.texts().size(), 1U);
}

TEST(Guards, NameParametersThatGetNoGradientOnce) {
  for (const int world_size : {1, 2}) {
    Heard heard;
    run_sessions(
        world_size, [&](Session& session) { train(session, 12, other_for_all, no_harm); },
        heard.options({.name_unused_after = 5}));
    EXPECT_EQ(heard.texts(), (std::vector<std::string>{"parameters 'spare.weight', 'spare.bias' got no gradient in the "
                                                       "first 5 steps: not used in the loss?"}));
  }
}

TEST(Guards, SayThatARankRanFewerSteps) {
  std::string error;
  run_sessions(2, [&](Session& session) {
    try {
      train(session, session.rank() == 1 ? 5 : 6, other_for_all, no_harm);
    } catch (const PeerLost& lost) {
      EXPECT_EQ(session.rank(), 0);
      error = lost.what();
    }
  });
  EXPECT_NE(error.find("rank 1 left the group before "), std::string::npos) << error;
  EXPECT_NE(error.find("; it ran fewer steps: this rank is in step 6"), std::string::npos) << error;
}

struct NetWithBuffer : GuardedNet {
  NetWithBuffer() { register_buffer("seen", at::zeros({1})); }
};

TEST(Guards, SayThatARankRanFewerStepsAlsoWhereBuffersComeFirst) {
  std::string error;
  run_sessions(2, [&](Session& session) {
    auto model = session.wrap(std::make_shared<NetWithBuffer>());
    const auto step = [](NetWithBuffer& net, const at::Tensor& batch) { return net.forward(batch).mean(); };
    model.train_step(at::ones({2, 4}), step);
    if (session.rank() == 1) return;
    try {
      model.train_step(at::ones({2, 4}), step);
    } catch (const PeerLost& lost) {
      error = lost.what();
    }
  });
  EXPECT_NE(error.find("; it ran fewer steps: this rank is in step 2"), std::string::npos) << error;
}

TEST(Guards, CountTheStepsThatARankJoinsWithoutABatch) {
  Heard heard;
  run_sessions(
      2,
      [&](Session& session) {
        auto model = session.wrap(std::make_shared<GuardedNet>());
        auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.01);
        Join join(session, model);
        for (int batch = 0; batch < 2 + 2 * session.rank(); ++batch) {
          join.begin_step();
          optimizer.zero_grad();
          model.train_step(at::ones({2, 4}),
                           [](GuardedNet& net, const at::Tensor& part) { return net.forward(part).mean(); });
          optimizer.step();
        }
        while (join.others_go_on()) {
          optimizer.zero_grad();
          join.train_step_without_batch();
          optimizer.step();
        }
      },
      heard.options({.compare_parameters_every = 1, .compare_batches_for = 3}));
  EXPECT_EQ(heard.texts(), std::vector<std::string>()) << "a rank without a batch has none that is identical";
}

class GuardsOfOwnLoops : public testing::TestWithParam<Loop> {};
INSTANTIATE_TEST_SUITE_P(Both, GuardsOfOwnLoops, testing::Values(Loop::kClassic, Loop::kWrapped),
                         [](const auto& loop) { return loop.param == Loop::kClassic ? "Classic" : "Wrapped"; });

TEST_P(GuardsOfOwnLoops, NameRanksWithIdenticalGradients) {
  Heard heard;
  const auto same_for_two = [](int rank, int step) { return (rank == 1 ? 0.5 : 0.25) + step; };
  run_sessions(3, [&](Session& session) {
    train_in_own_loop(GetParam(), session, heard.options()(0).guards, 5, same_for_two, no_harm);
    train_in_own_loop(GetParam(), session, heard.options()(0).guards, 5, other_for_all, no_harm);
  });
  EXPECT_EQ(heard.texts(), (std::vector<std::string>{
                               "ranks 0, 2 computed identical gradients in the first 3 steps, so that they do the same "
                               "work: read through session.loader(), or give each rank its own part"}));
}

TEST_P(GuardsOfOwnLoops, RefuseParametersThatAreNotTheSameOnAllRanks) {
  std::atomic<int> refusals = 0;
  run_sessions(2, [&](Session& session) {
    const auto harm = [&](GuardedNet& net, int step) {
      const at::NoGradGuard no_grad;
      if (session.rank() == 1 && step == 4) net.used->bias += 1;
    };
    try {
      train_in_own_loop(GetParam(), session, {.compare_parameters_every = 5}, 7, other_for_all, harm);
    } catch (const RankMismatch& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("'used.bias' is not the same on all ranks after 4 updates: rank 1"), std::string::npos)
          << text;
      ++refusals;
    }
  });
  EXPECT_EQ(refusals, 2) << "on every rank, out of backward()";
}

TEST_P(GuardsOfOwnLoops, NameParametersThatGetNoGradient) {
  Heard heard;
  const GuardOptions guards = heard.options({.name_unused_after = 4})(0).guards;
  run_sessions(2, [&](Session& session) { train_in_own_loop(GetParam(), session, guards, 6, other_for_all, no_harm); });
  ASSERT_EQ(heard.texts().size(), 1U);
  EXPECT_NE(heard.texts()[0].find("'spare.weight', 'spare.bias' got no gradient in the first 4 steps"),
            std::string::npos)
      << heard.texts()[0];
}

TEST_P(GuardsOfOwnLoops, SayThatARankRanFewerSteps) {
  std::string error;
  run_sessions(2, [&](Session& session) {
    try {
      train_in_own_loop(GetParam(), session, {}, session.rank() == 1 ? 5 : 6, other_for_all, no_harm);
    } catch (const PeerLost& lost) {
      EXPECT_EQ(session.rank(), 0);
      error = lost.what();
    }
  });
  EXPECT_NE(error.find("; it ran fewer steps: this rank is in step 6"), std::string::npos) << error;
}

TEST(Guards, NameUnusedParametersOfTheClassicFormAlsoAlone) {
  Heard heard;
  const GuardOptions guards = heard.options({.name_unused_after = 4})(0).guards;
  run_sessions(
      1, [&](Session& session) { train_in_own_loop(Loop::kClassic, session, guards, 6, other_for_all, no_harm); });
  EXPECT_EQ(heard.texts().size(), 1U);
}

TEST(Guards, StayAsTheSessionSaysWhereOtherOptionsOfAModelAreGiven) {
  Heard heard;
  for (const std::int64_t batches : {0, 3}) {
    run_sessions(
        2,
        [](Session& session) {
          auto model = session.wrap(std::make_shared<GuardedNet>(), WrapOptions{.broadcast_buffers = false});
          for (int step = 0; step < 4; ++step) {
            model.train_step(at::ones({2, 4}),
                             [](GuardedNet& net, const at::Tensor& part) { return net.used(part).mean(); });
          }
        },
        heard.options({.compare_batches_for = batches}));
    EXPECT_EQ(heard.texts().size(), batches == 0 ? 0U : 1U) << "off by the session, then heard by its listener";
  }
}

TEST(Guards, ContainWhatTheirListenerThrows) {
  const auto options_of_rank = [](int) {
    SessionOptions options{.banner = false};
    options.guards.warn = [](const std::string&) { throw std::runtime_error("the log is full"); };
    return options;
  };
  testing::internal::CaptureStderr();
  run_sessions(
      2,
      [](Session& session) {
        train(
            session, 4, [](int, int step) { return 1.0 * step; }, no_harm);
      },
      options_of_rank);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("lrun: warning: ranks 0, 1 got identical batches"), std::string::npos) << text;
  EXPECT_NE(text.find("lrun: warning: GuardOptions::warn threw: the log is full"), std::string::npos) << text;
}

TEST(Guards, SayInWhichStepRanksCalledDifferentOperations) {
  run_sessions(2, [&](Session& session) {
    try {
      train(session, session.rank() == 1 ? 5 : 6, other_for_all, no_harm);
      (void)session.all_reduce(1.0);
      ADD_FAILURE() << "rank " << session.rank() << " heard of nothing";
    } catch (const CollectiveMismatch& error) {
      const bool names_step = std::string(error.what()).find("; this rank was in training step 6") != std::string::npos;
      EXPECT_EQ(names_step, session.rank() == 0) << error.what();
    }
  });
}

}  // namespace
}  // namespace lrun::detail
