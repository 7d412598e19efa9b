// After the first backward() buckets are in the order in which gradients arrive.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/gradient_sync.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/support/parameters.h"
#include "runtime/support/recording_collectives.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

using test::expect_gradient;
using test::kOneBucketEach;
using test::named;
using test::parameter;
using test::run_ranks;

constexpr std::size_t kLayers = 4;

/// Layers of ones, registered in the order 0 … 3.
struct Layers {
  std::vector<at::Tensor> weights = [] {
    std::vector<at::Tensor> made;
    for (std::size_t layer = 0; layer < kLayers; ++layer) made.push_back(parameter({8}));
    return made;
  }();
  at::Tensor input = at::ones({8});

  /// Gradients arrive in the reverse of `used`; each is `scale` everywhere.
  [[nodiscard]] at::Tensor loss(const std::vector<std::size_t>& used, double scale) const {
    at::Tensor hidden = input;
    for (const std::size_t layer : used) hidden = hidden * weights[layer];
    return (hidden * scale).sum();
  }
  void zero_grad() {
    for (auto& weight : weights) test::zero_grad_to_none(weight);
  }
};

const std::vector<std::size_t> kAsRegistered = {0, 1, 2, 3};
const std::vector<std::size_t> kLastFirst = {3, 2, 1, 0};

bool is_in(const at::Tensor& gradient, const at::Tensor& bucket) {
  return gradient.defined() && gradient.storage().is_alias_of(bucket.storage());
}

/// The layers whose gradients are in the buckets, in the buckets' order; each bucket holds one.
std::vector<std::size_t> layers_of(const GradientSync& sync, const Layers& layers) {
  std::vector<std::size_t> found;
  for (const auto& bucket : sync.buckets()) {
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      if (is_in(layers.weights[layer].grad(), bucket)) found.push_back(layer);
    }
  }
  return found;
}

TEST(BucketOrder, IsThatOfArrivalAfterTheFirstBackward) {
  run_ranks(3, [](int rank, Collectives& collectives) {
    const Layers layers;
    GradientSync sync(named(layers.weights), collectives, kOneBucketEach);
    layers.loss({2, 0, 3, 1}, rank).backward();
    EXPECT_EQ(layers_of(sync, layers), (std::vector<std::size_t>{1, 3, 0, 2}));
    for (const auto& weight : layers.weights) expect_gradient(weight, 1);
  });
}

TEST(BucketOrder, LetsReductionBeginBeforeTheLastGradientArrived) {
  run_ranks(2, [](int, Collectives& inner) {
    int posted = 0;
    test::RecordingCollectives collectives(inner, [&](const std::string& operation, const at::Tensor&) {
      if (operation == "all_reduce") ++posted;
    });
    Layers layers;
    GradientSync sync(named(layers.weights), collectives, kOneBucketEach);
    std::vector<int> before_the_last;
    layers.weights[3].register_hook([&](const at::Tensor&) { before_the_last.push_back(posted); });
    for (int step = 0; step < 3; ++step) {
      layers.zero_grad();
      posted = 0;
      layers.loss(kLastFirst, 1).backward();
      EXPECT_EQ(posted, 4);
    }
    EXPECT_EQ(before_the_last, (std::vector<int>{0, 3, 3})) << "the last one's bucket was expected first";
  });
}

TEST(BucketOrder, KeepsGradientsWhereTheyAreFromThenOn) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    Layers layers;
    GradientSync sync(named(layers.weights), collectives, kOneBucketEach);
    layers.loss(kLastFirst, rank).backward();
    std::vector<at::Tensor> gradients;
    for (const auto& weight : layers.weights) gradients.push_back(weight.grad());
    for (const auto zero_grad : {test::zero_grad_to_none, test::zero_grad_in_place}) {
      for (auto& weight : layers.weights) zero_grad(weight);
      layers.loss(kAsRegistered, rank).backward();
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        EXPECT_TRUE(layers.weights[layer].grad().is_same(gradients[layer])) << "the gradient moved";
        EXPECT_FALSE(gradients[layer].is_view()) << "zero_grad(false) could not detach a view in place";
        expect_gradient(layers.weights[layer], 0.5);
      }
    }
  });
}

TEST(BucketOrder, StaysWhereBucketsFillOneByOne) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    const Layers layers;
    GradientSync sync(named(layers.weights), collectives, kOneBucketEach);
    const auto before = sync.buckets();
    layers.loss(kAsRegistered, rank).backward();
    for (std::size_t index = 0; index < kLayers; ++index) {
      EXPECT_TRUE(sync.buckets()[index].is_same(before[index])) << "made anew for nothing";
    }
  });
}

TEST(BucketOrder, IsThatOfRankZeroOnAllRanks) {
  run_ranks(3, [](int rank, Collectives& collectives) {
    Layers layers;
    GradientSync sync(named(layers.weights), collectives, kOneBucketEach);
    const std::vector<std::vector<std::size_t>> used = {{3, 1, 0, 2}, kAsRegistered, kLastFirst};
    for (int step = 0; step < 2; ++step) {
      layers.zero_grad();
      layers.loss(used[static_cast<std::size_t>(rank)], rank).backward();
      EXPECT_EQ(layers_of(sync, layers), (std::vector<std::size_t>{2, 0, 1, 3}));
      for (const auto& weight : layers.weights) expect_gradient(weight, 1);
    }
  });
}

TEST(BucketOrder, HasLastWhatDidNotArrive) {
  run_ranks(2, [](int, Collectives& inner) {
    std::vector<int> before_the_last;
    int posted = 0;
    test::RecordingCollectives collectives(inner, [&](const std::string& operation, const at::Tensor&) {
      if (operation == "all_reduce") ++posted;
    });
    Layers layers;
    GradientSync sync(named(layers.weights), collectives, kOneBucketEach);
    layers.weights[0].register_hook([&](const at::Tensor&) { before_the_last.push_back(posted); });
    for (int step = 0; step < 2; ++step) {
      posted = 0;
      layers.zero_grad();
      layers.loss({0, 1, 2}, 1).backward();  // 3, whose bucket came first, is unused
      EXPECT_EQ(posted, 4);
      EXPECT_FALSE(layers.weights[3].grad().defined());
    }
    EXPECT_EQ(before_the_last, (std::vector<int>{0, 2}));
    layers.zero_grad();
    layers.loss(kAsRegistered, 2).backward();
    for (const auto& weight : layers.weights) expect_gradient(weight, 2);
  });
}

TEST(BucketOrder, IsThatOfTheFirstBackwardThatAverages) {
  run_ranks(2, [](int rank, Collectives& inner) {
    int operations = 0;
    test::RecordingCollectives collectives(inner, [&](const std::string&, const at::Tensor&) { ++operations; });
    const Layers layers;
    GradientSync sync(named(layers.weights), collectives, kOneBucketEach);
    {
      const auto local = sync.no_sync();
      layers.loss({3, 0, 1, 2}, rank).backward();
    }
    EXPECT_EQ(operations, 0);
    layers.loss(kLastFirst, 2 * rank).backward();
    EXPECT_EQ(layers_of(sync, layers), (std::vector<std::size_t>{0, 1, 2, 3}));
    for (const auto& weight : layers.weights) expect_gradient(weight, 1.5, "accumulated, moved and averaged");
    {
      const auto local = sync.no_sync();
      layers.loss(kLastFirst, rank).backward();
    }
    for (const auto& weight : layers.weights) expect_gradient(weight, 1.5 + rank, "accumulated in the new bucket");
    layers.loss(kLastFirst, 0).backward();
    for (const auto& weight : layers.weights) expect_gradient(weight, 2);
    EXPECT_EQ(operations, 2 * 4 + 1) << "the order was told more than once";
  });
}

TEST(BucketOrder, IsSettledWithARankThatHasNoBatch) {
  for (const int idle : {0, 1}) {
    run_ranks(2, [idle](int rank, Collectives& collectives) {
      Layers layers;
      GradientSync sync(named(layers.weights), collectives, kOneBucketEach);
      for (int step = 0; step < 2; ++step) {
        layers.zero_grad();
        if (rank == idle) {
          sync.average_after([] {});
        } else {
          layers.loss(kLastFirst, 4).backward();
        }
        for (const auto& weight : layers.weights) expect_gradient(weight, 2);
      }
      EXPECT_EQ(layers_of(sync, layers), idle == 0 ? kLastFirst : kAsRegistered) << "rank 0 tells the order";
    });
  }
}

class OrderWithOptions : public testing::TestWithParam<GradientSyncOptions> {};

TEST_P(OrderWithOptions, IsThatOfArrivalAndGradientsAreRight) {
  run_ranks(4, [](int rank, Collectives& collectives) {
    Layers layers;
    GradientSync sync(named(layers.weights), collectives, GetParam());
    for (int step = 1; step <= 3; ++step) {
      layers.zero_grad();
      layers.loss(kLastFirst, step * rank).backward();
      for (const auto& weight : layers.weights) expect_gradient(weight, 1.5 * step);
      EXPECT_EQ(layers_of(sync, layers), kAsRegistered);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, OrderWithOptions,
    testing::Values(GradientSyncOptions{.bucket_bytes = 1, .first_bucket_bytes = 1, .wire = WireFormat::kFloat16},
                    GradientSyncOptions{.bucket_bytes = 1, .first_bucket_bytes = 1, .wire = WireFormat::kBFloat16},
                    GradientSyncOptions{.bucket_bytes = 1, .first_bucket_bytes = 1, .find_unused = false},
                    GradientSyncOptions{.bucket_bytes = 1, .first_bucket_bytes = 1, .static_graph = true}));

TEST(BucketOrder, IsSettledAgainAfterABackwardThatFailedOnAllRanks) {
  run_ranks(2, [](int rank, Collectives& collectives) {
    Layers layers;
    auto options = kOneBucketEach;
    options.find_unused = false;
    GradientSync sync(named(layers.weights), collectives, options);
    EXPECT_THROW(layers.loss({0, 1}, 1).backward(), std::logic_error) << "2 and 3 got no gradient";
    layers.zero_grad();
    layers.loss(kLastFirst, rank).backward();
    EXPECT_EQ(layers_of(sync, layers), kAsRegistered);
    for (const auto& weight : layers.weights) expect_gradient(weight, 0.5);
  });
}

}  // namespace
}  // namespace lrun::detail
