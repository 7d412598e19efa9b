#include "lrun/gradient_sync.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/support/parameters.h"
#include "runtime/support/recording_collectives.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

using namespace test;  // NOLINT: the vocabulary of these tests

bool lies_in(const at::Tensor& part, const at::Tensor& bucket) {
  const auto* begin = static_cast<const char*>(bucket.const_data_ptr());
  const auto* address = static_cast<const char*>(part.const_data_ptr());
  return address >= begin && address < begin + bucket.nbytes();
}

/// The text of the std::invalid_argument that `function` throws, or "" when it throws nothing.
std::string text_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(GradientSync, AveragesOverTheRanks) {
  run_ranks(3, [](int rank, Collectives& collectives) {
    auto weight = parameter({2, 3});
    GradientSync sync(named({weight}), collectives);
    loss_with_gradient(weight, rank).backward();
    expect_gradient(weight, 1.0);
  });
}

TEST(GradientSync, KeepsGradientsInTheBucketsAfterZeroGrad) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({64, 8}), parameter({5})};
    GradientSync sync(named(weights), collectives, kOneBucketEach);
    std::vector<const void*> places;
    for (const auto zero_grad : {zero_grad_to_none, zero_grad_to_none, zero_grad_in_place}) {
      (loss_with_gradient(weights[0], rank) + loss_with_gradient(weights[1], 1)).backward();
      for (std::size_t index = 0; index < weights.size(); ++index) {
        const auto gradient = weights[index].grad();
        EXPECT_TRUE(lies_in(gradient, sync.buckets()[0]) || lies_in(gradient, sync.buckets()[1]))
            << "parameter " << index;
        EXPECT_FALSE(gradient.is_view()) << "zero_grad(false) could not detach a view in place";
        places.push_back(gradient.const_data_ptr());
        EXPECT_EQ(gradient.const_data_ptr(), places[index]) << "the gradient moved";
        zero_grad(weights[index]);
      }
    }
    EXPECT_TRUE(weights[0].grad().defined());
    loss_with_gradient(weights[0], rank).backward();
    expect_gradient(weights[0], 0.5, "after zero_grad in place");
  });
}

TEST(GradientSync, TakesAGradientThatTheProgramAssigned) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    GradientSync sync(named({weight}), collectives);
    loss_with_gradient(weight, 1).backward();
    weight.mutable_grad() = weight.grad() * 10;
    loss_with_gradient(weight, rank).backward();
    expect_gradient(weight, 10.5);
    EXPECT_TRUE(lies_in(weight.grad(), sync.buckets()[0]));
  });
}

TEST(GradientSync, FollowsTheParametersLayout) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto transposed = at::arange(6, at::kFloat).view({2, 3}).t().set_requires_grad(true);
    GradientSync sync(named({transposed}), collectives);
    (transposed * transposed * (rank + 1)).sum().backward();
    EXPECT_EQ(transposed.grad().strides(), transposed.strides());
    EXPECT_TRUE(transposed.grad().equal(transposed.detach() * 3));
  });
}

TEST(GradientSync, PostsTheFirstBucketBeforeTheLastGradientArrived) {
  run_ranks(2, [](int, Collectives& inner) {
    std::vector<std::string> events;
    RecordingCollectives collectives(
        inner, [&](const std::string& operation, const at::Tensor&) { events.push_back(operation); });
    std::vector<at::Tensor> weights = {parameter({8, 8}), parameter({8, 8}), parameter({8, 8})};
    GradientSync sync(named(weights), collectives, kOneBucketEach);
    weights.front().register_hook([&](const at::Tensor&) { events.emplace_back("last gradient"); });
    auto output = at::ones({1, 8});
    for (const auto& weight : weights) output = output.mm(weight);
    output.sum().backward();
    EXPECT_EQ(events,
              (std::vector<std::string>{"all_reduce", "all_reduce", "last gradient", "all_reduce", "broadcast"}))
        << "the broadcast is that of the order, once";
  });
}

TEST(GradientSync, PostsTheSameOrderWhateverOrderGradientsArriveIn) {
  run_ranks(2, [](int rank, Collectives& inner) {
    std::vector<std::int64_t> posted;
    RecordingCollectives collectives(inner, [&](const std::string& operation, const at::Tensor& bucket) {
      if (operation == "all_reduce") posted.push_back(bucket.numel());
    });
    std::vector<at::Tensor> weights = {parameter({16, 16}), parameter({16, 16}), parameter({16})};
    GradientSync sync(named(weights), collectives, kOneBucketEach);
    auto output = at::ones({1, 16});
    output = rank == 0 ? output.mm(weights[0]).mm(weights[1]) * weights[2]
                       : (output * weights[2]).mm(weights[1]).mm(weights[0]);
    output.sum().backward();
    EXPECT_EQ(posted, (std::vector<std::int64_t>{17, 257, 257}));
    expect_gradient(weights[0], 256.0 / 16.0);
  });
}

TEST(GradientSync, CountsARankWithoutAGradientAsZeros) {
  run_ranks(4, [](int rank, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync sync(named(weights), collectives);
    auto loss = loss_with_gradient(weights[0], 1);
    if (rank == 2) loss = loss + loss_with_gradient(weights[1], 8);
    loss.backward();
    expect_gradient(weights[1], 2);
  });
}

TEST(GradientSync, LeavesAParameterThatNobodyUsedAsItWas) {
  run_ranks(2, [](int, Collectives& collectives) {
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync sync(named(weights), collectives);
    loss_with_gradient(weights[0], 1).backward();
    EXPECT_FALSE(weights[1].grad().defined()) << "optimizers pass by a parameter without a gradient";

    loss_with_gradient(weights[1], 5).backward();
    loss_with_gradient(weights[0], 1).backward();
    expect_gradient(weights[1], 5, "kept from the step before, since nobody cleared it");
    expect_gradient(weights[0], 2);
  });
}

/// The gradient that a parameter has kept over one backward() in which nobody used it.
at::Tensor kept_over_a_pass(const at::Tensor& gradient, int rank, Collectives& collectives) {
  std::vector<at::Tensor> weights = {parameter({3}), parameter({gradient.numel()}, gradient.scalar_type())};
  GradientSync sync(named(weights), collectives);
  weights[1].mutable_grad() = gradient.clone();
  loss_with_gradient(weights[0], rank).backward();
  return weights[1].grad().clone();
}

TEST(GradientSync, KeepsAnUnusedGradientExactlyInWorldsOfTwoAndFourElsewhereUpToRounding) {
  for (const int world_size : {2, 3, 4, 5, 6, 7, 8}) {
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      const auto gradient = at::arange(1, 5000, dtype).reciprocal();
      run_ranks(world_size, [&](int rank, Collectives& collectives) {
        const auto kept = kept_over_a_pass(gradient, rank, collectives);
        const double epsilon =
            dtype == at::kFloat ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
        const double allowed = world_size == 2 || world_size == 4 ? 0 : world_size * epsilon / 2;
        const auto error = ((kept - gradient) / gradient).abs().max().item<double>();
        EXPECT_LE(error, allowed) << c10::toString(dtype) << ", " << world_size << " ranks";
      });
    }
  }
}

TEST(GradientSync, RefusesAParameterThatAnotherOneAverages) {
  for (const int world_size : {1, 2}) {
    run_ranks(world_size, [](int rank, Collectives& collectives) {
      auto shared = parameter({3});
      auto own = parameter({3});
      const auto refusal = [&] {
        return text_of([&] { GradientSync second({{"own", own}, {"shared", shared}}, collectives); });
      };
      std::optional<NoSyncGuard> guard;
      {
        GradientSync first(named({shared}), collectives);
        for (int attempt = 0; attempt < 2; ++attempt) {
          EXPECT_EQ(refusal(),
                    "parameter 'shared' is trained by another wrapped model already: destroy that one before, or wrap "
                    "one module that holds the parameters of both");
        }
        GradientSync of_own(named({own}), collectives);
        loss_with_gradient(shared, rank).backward();
        expect_gradient(shared, (collectives.world_size() - 1) / 2.0, "the first one's");
        guard.emplace(first.no_sync());
      }
      EXPECT_EQ(refusal(), "") << "the first one is gone, if not its guard";
    });
  }
}

TEST(GradientSync, EndsOnARankWhereNoParameterGotAGradient) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    auto input = parameter({3});
    GradientSync sync(named({weight}), collectives);
    auto output = rank == 0 ? weight * 4 : input * 4;
    sync.watch(output);
    output.sum().backward();
    expect_gradient(weight, 2);
  });
}

TEST(GradientSync, PassesFrozenParametersByAndCountsTiedOnesOnce) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto tied = parameter({16});
    auto frozen = at::ones({100});
    GradientSync sync({{"in", tied}, {"frozen", frozen}, {"out", tied}}, collectives);
    EXPECT_EQ(sync.buckets().size(), 1U);
    EXPECT_EQ(sync.buckets()[0].numel(), 16 + 1) << "the weight and its flag";
    (tied * rank + tied * 2).sum().backward();
    expect_gradient(tied, 2.5);
    EXPECT_FALSE(frozen.grad().defined());
  });
}

TEST(GradientSync, KeepsDtypesApart) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    std::vector<at::Tensor> weights;
    for (const auto dtype : {at::kFloat, at::kHalf, at::kDouble, at::kBFloat16, at::kFloat}) {
      weights.push_back(parameter({7}, dtype));
    }
    GradientSync sync(named(weights), collectives);
    EXPECT_EQ(sync.buckets().size(), 4U);
    auto loss = at::zeros({});
    for (const auto& weight : weights) loss = loss + loss_with_gradient(weight, 1 + rank).to(at::kFloat);
    loss.backward();
    for (const auto& weight : weights) {
      expect_gradient(weight, 1.5, c10::toString(weight.scalar_type()));
      EXPECT_EQ(weight.grad().scalar_type(), weight.scalar_type());
    }
  });
}

TEST(GradientSync, MakesSparseGradientsDense) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto table = parameter({4, 2});
    GradientSync sync(named({table}), collectives);
    for (int step = 0; step < 2; ++step) {
      zero_grad_to_none(table);
      at::embedding(table, at::full({1}, rank, at::kLong), -1, false, /*sparse=*/true).sum().backward();
      EXPECT_EQ(table.grad().layout(), at::kStrided);
      EXPECT_TRUE(table.grad().equal(at::tensor({0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0}, at::kFloat).view({4, 2})));
    }
  });
}

TEST(GradientSync, OnlyAccumulatesUnderNoSync) {
  run_ranks(2, [](int rank, Collectives& inner) {
    int reduced = 0;
    RecordingCollectives collectives(inner, [&](const std::string&, const at::Tensor&) { ++reduced; });
    std::vector<at::Tensor> weights = {parameter({3}), parameter({3})};
    GradientSync sync(named(weights), collectives);
    {
      auto guard = sync.no_sync();
      const auto moved = std::move(guard);
      const auto nested = sync.no_sync();
      EXPECT_FALSE(sync.syncs());
      (loss_with_gradient(weights[0], rank) + loss_with_gradient(weights[1], 2 * rank)).backward();
      loss_with_gradient(weights[0], rank).backward();
    }
    EXPECT_TRUE(sync.syncs());
    EXPECT_EQ(reduced, 0);
    expect_gradient(weights[0], 2 * rank, "accumulated on this rank");
    loss_with_gradient(weights[0], 10).backward();
    EXPECT_EQ(reduced, 1);
    expect_gradient(weights[0], 11, "average of what was accumulated");
    expect_gradient(weights[1], 1, "accumulated before, without a gradient in the last backward");
  });
}

TEST(GradientSync, AddsUpTwoBackwardsOfOneStep) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    GradientSync sync(named({weight}), collectives);
    loss_with_gradient(weight, rank).backward();
    loss_with_gradient(weight, 4 * rank).backward();
    expect_gradient(weight, 2.5);
  });
}

TEST(GradientSync, DoesNotCommunicateForTorchsGrad) {
  run_ranks(1 + 1, [](int rank, Collectives& inner) {
    int reduced = 0;
    RecordingCollectives collectives(inner, [&](const std::string&, const at::Tensor&) { ++reduced; });
    auto weight = parameter({3});
    auto input = parameter({3});
    GradientSync sync(named({weight}), collectives);
    auto output = weight * input * rank;
    sync.watch(output);
    const auto gradients = torch::autograd::grad({output.sum()}, {input});
    EXPECT_TRUE(gradients[0].eq(rank).all().item<bool>());
    EXPECT_EQ(reduced, 0);
    EXPECT_FALSE(weight.grad().defined());
  });
}

TEST(GradientSync, DoesNothingInAWorldOfOne) {
  run_ranks(1, [](int, Collectives& collectives) {
    auto weight = parameter({3});
    GradientSync sync(named({weight}), collectives);
    EXPECT_TRUE(sync.buckets().empty());
    sync.prepare();
    loss_with_gradient(weight, 3).backward();
    expect_gradient(weight, 3);
  });
}

TEST(GradientSync, LeavesGradientsBehindAndHooksNot) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    auto weight = parameter({3});
    {
      GradientSync sync(named({weight}), collectives);
      loss_with_gradient(weight, rank).backward();
    }
    expect_gradient(weight, 0.5);
    loss_with_gradient(weight, rank).backward();
    expect_gradient(weight, 0.5 + rank, "not averaged any more");
  });
}

TEST(GradientSync, RefusesWhatItCannotAverage) {
  run_ranks(2, [](int, Collectives& collectives) {
    EXPECT_THROW(GradientSync(named({parameter({3}) * 2}), collectives), std::invalid_argument);
    EXPECT_THROW(GradientSync(named({parameter({3})}), collectives, {.bucket_bytes = 0}), std::invalid_argument);
    try {
      GradientSync sync(named({parameter({3}, at::kComplexFloat)}), collectives);
      ADD_FAILURE() << "accepted";
    } catch (const Unsupported& error) {
      EXPECT_STREQ(error.what(), "gradients of parameter 'p0' cannot be averaged: its dtype is ComplexFloat");
    }
  });
}

}  // namespace
}  // namespace lrun::detail
