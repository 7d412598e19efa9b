// Means and predictions of ranks with different numbers of samples are those of one process.
#include "lrun/evaluation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/distributed_sampler.h>
#include <lrun/error.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "runtime/support/documented_evaluation.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

/// The values of these samples: (samples, 2).
at::Tensor values_of(const std::vector<std::size_t>& samples) {
  at::Tensor values = at::empty({static_cast<std::int64_t>(samples.size()), 2}, at::kDouble);
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const auto number = static_cast<double>(samples[row]);
    values[static_cast<std::int64_t>(row)].copy_(at::tensor({number, std::sin(number)}, at::kDouble));
  }
  return values;
}

TEST(Evaluation, HasTheMeanAndTheOrderOfOneProcess) {
  for (const int world_size : {1, 2, 3, 4}) {
    for (const std::size_t samples : {0UL, 1UL, 2UL, 3UL, 5UL, 12UL, 101UL}) {
      test::run_ranks(world_size, [&](int rank, Collectives& collectives) {
        const DistributedSampler sampler(samples, world_size, rank,
                                         {.shuffle = false, .remainder = Remainder::kUneven});
        const at::Tensor mine = values_of(sampler.indices(0));
        std::vector<std::size_t> all(samples);
        for (std::size_t sample = 0; sample < samples; ++sample) all[sample] = sample;
        const at::Tensor expected = values_of(all);
        EXPECT_TRUE(all_gather_in_order(collectives, mine).equal(expected)) << samples << " over " << world_size;
        const double mean =
            weighted_mean(collectives, mine.select(1, 1).mean().item<double>(), static_cast<double>(mine.size(0)));
        if (samples == 0) {
          EXPECT_TRUE(std::isnan(mean));
        } else {
          EXPECT_NEAR(mean, expected.select(1, 1).mean().item<double>(), 1e-12) << samples << " over " << world_size;
        }
      });
    }
  }
}

TEST(Evaluation, EqualsOneProcessInItsExampleAlsoOnRanksWithoutSamples) {
  for (const int world_size : {1, 2, 3}) {
    for (const std::size_t samples : {0UL, 1UL, 2UL, 7UL}) {
      const test::LabelledWaves data(samples);
      const test::Evaluated expected = test::evaluate_alone(data);
      test::run_sessions(world_size, [&](Session& session) {
        const test::Evaluated actual = test::evaluate_as_documented(session, data);
        EXPECT_TRUE(at::allclose(actual.predictions, expected.predictions)) << samples << " over " << world_size;
        EXPECT_EQ(actual.predictions.sizes(), expected.predictions.sizes());
        if (samples == 0) {
          EXPECT_TRUE(std::isnan(actual.mean)) << actual.mean;
        } else {
          EXPECT_NEAR(actual.mean, expected.mean, 1e-6) << samples << " over " << world_size;
        }
      });
    }
  }
}

TEST(Evaluation, RefusesRowsThatNoUnevenLoaderGives) {
  test::run_ranks(2, [](int rank, Collectives& collectives) {
    try {
      static_cast<void>(all_gather_in_order(collectives, at::zeros({rank == 0 ? 2 : 5, 3})));
      ADD_FAILURE() << "accepted";
    } catch (const CollectiveMismatch& error) {
      EXPECT_STREQ(error.what(),
                   "all_gather_in_order: rank 0 has 2 of 7 rows, and would have 4 as Remainder::kUneven divides them");
    }
    EXPECT_THROW(static_cast<void>(all_gather_in_order(collectives, at::zeros({}))), std::invalid_argument);
    for (const double weight : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
      EXPECT_THROW(static_cast<void>(weighted_mean(collectives, 1, weight)), std::invalid_argument);
    }
    EXPECT_EQ(weighted_mean(collectives, rank == 0 ? 3 : std::nan(""), rank == 0 ? 2 : 0), 3);
  });
}

}  // namespace
}  // namespace lrun::detail
