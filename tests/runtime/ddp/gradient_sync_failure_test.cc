#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/gradient_sync.h>
#include <torch/csrc/autograd/custom_function.h>

#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/support/parameters.h"
#include "runtime/support/recording_collectives.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

using namespace test;  // NOLINT: the vocabulary of these tests

struct ThrowsInBackward : torch::autograd::Function<ThrowsInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& input) { return input.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list) {
    throw std::runtime_error("the program's own");
  }
};

/// Its backward() ends in the program's exception once `weight`'s gradient has arrived.
at::Tensor loss_that_throws(const at::Tensor& weight, const at::Tensor& behind) {
  return (ThrowsInBackward::apply(behind) * weight).sum();
}

std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const CollectiveMismatch& error) {
    return std::string("CollectiveMismatch: ") + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(GradientSync, NeverAddsUpDifferentBucketsOfEqualSize) {
  const auto failures = run_ranks_and_catch(2, [](int rank, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync sync(named(weights), collectives, kOneBucketEach);
    if (rank == 0) {
      EXPECT_THROW(loss_that_throws(weights[1], weights[0]).backward(), std::runtime_error);
      for (auto& weight : weights) zero_grad_to_none(weight);
      sync.prepare();
    }
    (loss_with_gradient(weights[0], 1) + loss_with_gradient(weights[1], 100)).backward();
    ADD_FAILURE() << "rank " << rank << " took gradients " << weights[0].grad()[0].item<double>() << " and "
                  << weights[1].grad()[0].item<double>() << " for good";
  });
  for (const auto& failure : failures) {
    EXPECT_EQ(text_of(failure).substr(0, 18), "CollectiveMismatch") << text_of(failure);
    EXPECT_NE(text_of(failure).find("bucket 0 of pass 3 of model 1, but rank 1 called"), std::string::npos)
        << text_of(failure);
    EXPECT_NE(text_of(failure).find("bucket 1 of pass 1 of model 1; every rank has to call backward() equally often"),
              std::string::npos)
        << text_of(failure);
  }
}

TEST(GradientSync, NoticesAStepThatOneRankSkippedAfterItsLastBucket) {
  const auto failures = run_ranks_and_catch(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    auto input = parameter({3});
    GradientSync sync(named({weight}), collectives);
    if (rank == 0) {
      EXPECT_THROW(loss_that_throws(weight, input).backward(), std::runtime_error);
    } else {
      loss_with_gradient(weight, 1).backward();
    }
    zero_grad_to_none(weight);
    sync.prepare();
    loss_with_gradient(weight, 1).backward();
  });
  for (const auto& failure : failures) {
    EXPECT_EQ(text_of(failure).substr(0, 18), "CollectiveMismatch") << text_of(failure);
  }
}

TEST(GradientSync, NoticesAStepThatOneRankSkippedBeforeItsBackward) {
  const auto failures = run_ranks_and_catch(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    GradientSync sync(named({weight}), collectives);
    for (int step = 0; step < 3; ++step) {
      zero_grad_to_none(weight);
      try {
        sync.attempt([&] {
          sync.prepare();
          if (rank == 1 && step == 1) throw std::runtime_error("a bad sample");
          loss_with_gradient(weight, step).backward();
        });
      } catch (const std::runtime_error& error) {
        if (std::string(error.what()) != "a bad sample") throw;
        continue;
      }
      expect_gradient(weight, step, "step " + std::to_string(step) + " of rank " + std::to_string(rank));
    }
  });
  for (const auto& failure : failures) {
    EXPECT_NE(text_of(failure).find("CollectiveMismatch: rank 0 called all_reduce"), std::string::npos)
        << text_of(failure);
    EXPECT_NE(text_of(failure).find("bucket 0 of pass 2 of model 1, but rank 1 called"), std::string::npos)
        << text_of(failure);
    EXPECT_NE(text_of(failure).find("and none may skip a step that failed"), std::string::npos) << text_of(failure);
  }
}

TEST(GradientSync, GoesOnWhereAllRanksSkippedAStep) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    auto input = parameter({3});
    GradientSync sync(named({weight}), collectives);
    const auto fail = [] { throw std::runtime_error("a bad batch"); };
    EXPECT_THROW(sync.attempt(fail), std::runtime_error);
    {
      const auto local = sync.no_sync();
      for (int time = 0; time < rank; ++time) EXPECT_THROW(sync.attempt(fail), std::runtime_error);
    }
    EXPECT_THROW(sync.attempt([&] { loss_that_throws(weight, input).backward(); }), std::runtime_error);
    zero_grad_to_none(weight);
    sync.attempt([&] {
      sync.prepare();
      loss_with_gradient(weight, rank).backward();
    });
    expect_gradient(weight, 0.5);
  });
}

TEST(GradientSync, RefusesTwoModelsInOneBackward) {
  const auto failures = run_ranks_and_catch(2, [](int rank, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync first(named({weights[0]}), collectives);
    GradientSync second(named({weights[1]}), collectives);
    const auto index = static_cast<std::size_t>(rank);
    // The graph of each rank decides which gradient comes first.
    (weights[index] * (weights[1 - index] * 2).exp()).sum().backward();
    for (const auto& weight : weights) EXPECT_TRUE(weight.grad().defined());
  });
  for (const auto& failure : failures) {
    EXPECT_NE(text_of(failure).find("one backward() may run through one wrapped model only"), std::string::npos)
        << text_of(failure);
  }
}

TEST(GradientSync, BeginsAfreshInASecondBackwardWithoutAForwardBetween) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    GradientSync sync(named({weight}), collectives);
    const auto first = ThrowsInBackward::apply(weight * 7).sum();
    const auto second = loss_with_gradient(weight, rank);
    sync.watch(first);
    sync.watch(second);
    EXPECT_THROW(first.backward(), std::runtime_error);
    second.backward();
    expect_gradient(weight, 0.5);
  });
}

struct RunsABackward : torch::autograd::Function<RunsABackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight) {
    context->saved_data["weight"] = weight;
    return input.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    at::AutoGradMode with_grad(true);
    loss_with_gradient(context->saved_data["weight"].toTensor(), 3).backward();
    return {gradients[0], at::Tensor()};
  }
};

TEST(GradientSync, CountsABackwardWithinABackwardToItsPass) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync sync(named(weights), collectives);
    const auto loss = loss_with_gradient(RunsABackward::apply(weights[0], weights[1]), rank);
    sync.watch(loss);
    loss.backward();
    expect_gradient(weights[0], 0.5);
    expect_gradient(weights[1], 3);
  });
}

TEST(GradientSync, LetsAnExceptionOutBeforeTheOthersArrive) {
  std::promise<void> is_out;
  const auto failures = run_ranks_and_catch(2, [&, out = is_out.get_future().share()](int rank, Collectives& group) {
    auto weight = parameter({3});
    auto input = parameter({3});
    {
      GradientSync sync(named({weight}), group);
      if (rank == 0) {
        try {
          const auto loss = loss_that_throws(weight, input);
          GradientSync ended = std::move(sync);
          loss.backward();
        } catch (const std::runtime_error&) {
          is_out.set_value();
          throw;
        }
      }
      ASSERT_EQ(out.wait_for(kTestTimeout / 3), std::future_status::ready) << "rank 0 waits for rank 1";
      loss_with_gradient(weight, 1).backward();
    }
  });
  EXPECT_EQ(text_of(failures[0]), "the program's own");
  EXPECT_EQ(text_of(failures[1]), "rank 0: backward() ended in an exception");
}

TEST(GradientSync, ForgetsABackwardThatEndedInAnException) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync sync(named(weights), collectives, kOneBucketEach);
    EXPECT_THROW((ThrowsInBackward::apply(weights[0]) * weights[1]).sum().backward(), std::runtime_error);
    for (auto& weight : weights) zero_grad_to_none(weight);
    sync.prepare();
    (loss_with_gradient(weights[0], rank) + loss_with_gradient(weights[1], 1)).backward();
    expect_gradient(weights[0], 0.5);
    expect_gradient(weights[1], 1);
  });
}

TEST(GradientSync, LetsTheErrorsOfCollectivesOutOfBackward) {
  const auto failures = run_ranks_and_catch(3, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    GradientSync sync(named({weight}), collectives);
    if (rank == 1) throw std::runtime_error("this rank ends");
    loss_with_gradient(weight, 1).backward();
  });
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
    ASSERT_NE(failures[rank], nullptr) << "rank " << rank << " did not notice";
    try {
      std::rethrow_exception(failures[rank]);
    } catch (const PeerLost& error) {
      EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
    }
  }
}

TEST(GradientSync, NamesAParameterThatWasConvertedAfterwards) {
  run_ranks(2, [](int, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync sync(named(weights), collectives);
    const auto expect_refusal = [&](const at::Tensor& values, const std::string& text) {
      sync.prepare();
      const at::Tensor before = weights[1].detach();
      weights[1].set_data(values);
      try {
        sync.prepare();
        ADD_FAILURE() << "accepted";
      } catch (const std::logic_error& error) {
        EXPECT_EQ(error.what(), text);
      }
      weights[1].set_data(before);
    };
    expect_refusal(at::zeros({3}, at::kHalf),
                   "parameter 'p1' was Float when the module was wrapped and is Half now, by to() or by load() of an "
                   "archive: convert it back with module->to(torch::kFloat)");
    expect_refusal(at::zeros({2, 3}),
                   "parameter 'p1' was [3] when the module was wrapped and is [2, 3] now, by to() or by load() of an "
                   "archive: load one of this model");
  });
}

TEST(GradientSync, GoesOnWithAParameterThatIsAgainWhatItWas) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    GradientSync sync(named({weight}), collectives);
    for (int round = 0; round < 2; ++round) {
      weight.set_data(weight.detach().to(at::kDouble));  // autograd forgets where it accumulates
      weight.set_data(weight.detach().to(at::kFloat));
      zero_grad_to_none(weight);
      sync.prepare();
      loss_with_gradient(weight, rank).backward();
      expect_gradient(weight, 0.5);
    }
  });
}

TEST(GradientSync, NamesAParameterThatWasFrozenOrThawedAfterwards) {
  run_ranks(2, [](int, Collectives& collectives) {
    for (const bool trained_at_first : {true, false}) {
      std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
      weights[1].set_requires_grad(trained_at_first);
      GradientSync sync(named(weights), collectives);
      sync.prepare();
      weights[1].set_requires_grad(!trained_at_first);
      try {
        sync.prepare();
        ADD_FAILURE() << "accepted";
      } catch (const std::logic_error& error) {
        EXPECT_STREQ(error.what(),
                     "requires_grad of parameter 'p1' changed after the module was wrapped: destroy the wrapped model "
                     "and wrap again");
      }
    }
  });
}

TEST(GradientSync, RefusesTheGradientOfAnotherParameter) {
  const std::string refusal =
      "the gradient that was assigned to parameter 'p0' is that of another parameter, or a part of a bucket: assign a "
      "clone()";
  for (const bool prepares : {true, false}) {
    const auto failures = run_ranks_and_catch(2, [prepares](int rank, Collectives& collectives) {
      std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
      GradientSync sync(named(weights), collectives);
      const auto loss = [&] { return loss_with_gradient(weights[0], rank) + loss_with_gradient(weights[1], 5); };
      loss().backward();
      weights[0].mutable_grad() = weights[1].grad();
      if (prepares) sync.prepare();
      loss().backward();
      ADD_FAILURE() << "took " << weights[0].grad()[0].item<double>() << " for the gradient";
    });
    // Without prepare() the first rank that notices aborts the group.
    const bool told = text_of(failures[0]) == refusal || text_of(failures[1]) == refusal;
    EXPECT_TRUE(told) << text_of(failures[0]) << "; " << text_of(failures[1]);
  }
}

TEST(GradientSync, TakesItsOwnGradientDetachedAndACopyOfAnother) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync sync(named(weights), collectives);
    const auto step = [&] {
      sync.prepare();
      (loss_with_gradient(weights[0], rank) + loss_with_gradient(weights[1], 5)).backward();
    };
    step();
    weights[0].mutable_grad() = weights[0].grad().detach();
    step();
    expect_gradient(weights[0], 1, "two steps");
    weights[0].mutable_grad() = weights[1].grad().clone();
    step();
    expect_gradient(weights[0], 10.5, "the other's, and a step");
    expect_gradient(weights[1], 15, "three steps");
  });
}

}  // namespace
}  // namespace lrun::detail
