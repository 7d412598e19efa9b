#include <gtest/gtest.h>
#include <lrun/distributed_sampler.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace lrun::detail {
namespace {

using Indices = std::vector<std::size_t>;

std::vector<Indices> all_ranks(std::size_t size, int world_size, DistributedSamplerOptions options,
                               std::size_t epoch = 0) {
  std::vector<Indices> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(DistributedSampler(size, world_size, rank, options).indices(epoch));
  }
  return ranks;
}

/// How often each sample is drawn.
std::map<std::size_t, int> counts(const std::vector<Indices>& ranks) {
  std::map<std::size_t, int> result;
  for (const auto& rank : ranks) {
    for (const auto index : rank) ++result[index];
  }
  return result;
}

std::vector<std::size_t> sizes(const std::vector<Indices>& ranks) {
  std::vector<std::size_t> result;
  for (const auto& rank : ranks) result.push_back(rank.size());
  return result;
}

TEST(DistributedSampler, PadsAsTorchDoes) {
  const auto ranks = all_ranks(103, 4, {.shuffle = true, .seed = 5});
  EXPECT_EQ(sizes(ranks), (Indices{26, 26, 26, 26}));
  EXPECT_EQ(ranks[3].back(), ranks[0].front()) << "the last index repeats the first";
  EXPECT_EQ(counts(ranks).size(), 103U) << "every sample is drawn";
}

TEST(DistributedSampler, DropsAsTorchDoes) {
  const auto ranks = all_ranks(103, 4, {.shuffle = true, .seed = 5, .remainder = Remainder::kDrop});
  EXPECT_EQ(sizes(ranks), (Indices{25, 25, 25, 25}));
  EXPECT_EQ(counts(ranks).size(), 100U) << "no sample is drawn twice";
}

TEST(DistributedSampler, DropsOtherSamplesInOtherEpochs) {
  std::map<std::size_t, int> drawn;
  for (std::size_t epoch = 0; epoch < 20; ++epoch) {
    for (const auto& [index, count] : counts(all_ranks(10, 4, {.remainder = Remainder::kDrop}, epoch))) {
      drawn[index] += count;
    }
  }
  EXPECT_EQ(drawn.size(), 10U) << "a sample was never drawn";
}

TEST(DistributedSampler, GivesEverySampleOnceWhenUneven) {
  const auto ranks = all_ranks(103, 4, {.shuffle = false, .remainder = Remainder::kUneven});
  EXPECT_EQ(sizes(ranks), (Indices{26, 26, 26, 25}));
  for (const auto& [index, count] : counts(ranks)) EXPECT_EQ(count, 1) << index;
}

TEST(DistributedSampler, SplitsDisjointlyAndCompletely) {
  for (int world_size = 1; world_size <= 8; ++world_size) {
    const auto drawn = counts(all_ranks(840, world_size, {.seed = 7}, 3));
    EXPECT_EQ(drawn.size(), 840U) << world_size << " ranks";
    EXPECT_TRUE(std::all_of(drawn.begin(), drawn.end(), [](const auto& item) { return item.second == 1; }))
        << world_size << " ranks: a sample is on two of them";
  }
}

TEST(DistributedSampler, DealsTheOrderOutInTurns) {
  const auto ranks = all_ranks(8, 3, {.shuffle = false});
  EXPECT_EQ(ranks[0], (Indices{0, 3, 6}));
  EXPECT_EQ(ranks[1], (Indices{1, 4, 7}));
  EXPECT_EQ(ranks[2], (Indices{2, 5, 0}));
}

TEST(DistributedSampler, OrderDoesNotDependOnTheWorldSize) {
  const auto alone = all_ranks(12, 1, {.seed = 3}).front();
  const auto ranks = all_ranks(12, 3, {.seed = 3});
  for (std::size_t turn = 0; turn < 12; ++turn) EXPECT_EQ(alone[turn], ranks[turn % 3][turn / 3]);
}

TEST(DistributedSampler, OrderIsFixedForAllTime) {
  // A checkpoint of today goes on tomorrow, on another compiler.
  EXPECT_EQ(all_ranks(10, 1, {.seed = 0}, 0).front(), (Indices{1, 7, 6, 2, 0, 9, 8, 4, 5, 3}));
  EXPECT_EQ(all_ranks(10, 1, {.seed = 42}, 7).front(), (Indices{4, 1, 0, 6, 5, 3, 9, 7, 8, 2}));
}

TEST(DistributedSampler, ShufflesEveryEpochAndSeedDifferently) {
  const auto order = [](std::uint64_t seed, std::size_t epoch) {
    return all_ranks(1000, 1, {.seed = seed}, epoch).front();
  };
  EXPECT_NE(order(0, 0), order(0, 1));
  EXPECT_NE(order(0, 0), order(1, 0));
  EXPECT_NE(order(0, 1), order(1, 0)) << "seed + epoch is not enough to tell them apart";
  EXPECT_EQ(order(5, 9), order(5, 9));
}

TEST(DistributedSampler, ShufflesEvenly) {
  // Each of 6 samples in each of 6 places: 1000 expected, standard deviation 29.
  std::vector<std::vector<int>> places(6, std::vector<int>(6));
  for (std::size_t epoch = 0; epoch < 6000; ++epoch) {
    const auto order = all_ranks(6, 1, {.seed = 1}, epoch).front();
    for (std::size_t place = 0; place < 6; ++place) ++places[order[place]][place];
  }
  for (const auto& sample : places) {
    for (const int count : sample) EXPECT_NEAR(count, 1000, 150);
  }
}

TEST(DistributedSampler, ServesMoreRanksThanSamples) {
  const auto ranks = all_ranks(2, 8, {.shuffle = false});
  for (std::size_t rank = 0; rank < 8; ++rank) EXPECT_EQ(ranks[rank], Indices{rank % 2});
  EXPECT_EQ(sizes(all_ranks(2, 8, {.remainder = Remainder::kDrop})), Indices(8, 0));
  EXPECT_EQ(sizes(all_ranks(0, 3, {})), Indices(3, 0));
}

TEST(DistributedSampler, StartsTheNextEpochAtEachReset) {
  DistributedSampler sampler(10, 2, 1);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    sampler.reset();
    EXPECT_EQ(sampler.epoch(), epoch);
    EXPECT_EQ(sampler.next(100), sampler.indices(epoch));
    EXPECT_EQ(sampler.next(100), std::nullopt);
  }
}

TEST(DistributedSampler, GoesOnFromTheEpochThatWasSetThroughACopy) {
  DistributedSampler mine(10, 2, 0);
  DistributedSampler the_loaders = mine;
  mine.set_epoch(7);
  the_loaders.reset();
  EXPECT_EQ(mine.epoch(), 7U);
  EXPECT_EQ(the_loaders.next(5), mine.indices(7));
  the_loaders.reset();
  EXPECT_EQ(mine.epoch(), 8U);
}

TEST(DistributedSampler, CutsBatchesAndEndsWithASmallerOne) {
  DistributedSampler sampler(7, 1, 0, {.shuffle = false});
  sampler.reset();
  EXPECT_EQ(sampler.next(3), (Indices{0, 1, 2}));
  EXPECT_EQ(sampler.next(3), (Indices{3, 4, 5}));
  EXPECT_EQ(sampler.next(3), (Indices{6}));
  EXPECT_EQ(sampler.next(3), std::nullopt);
}

TEST(DistributedSampler, RefusesARankOutsideOfTheWorld) {
  EXPECT_THROW(DistributedSampler(10, 2, 2), std::invalid_argument);
  EXPECT_THROW(DistributedSampler(10, 2, -1), std::invalid_argument);
  EXPECT_THROW(DistributedSampler(10, 0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace lrun::detail
