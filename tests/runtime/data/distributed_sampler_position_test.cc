#include <gtest/gtest.h>
#include <lrun/distributed_sampler.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

namespace lrun::detail {
namespace {

using Indices = std::vector<std::size_t>;

/// The ranks of one world, which take batches in turns, as a training does.
class Ranks {
 public:
  Ranks(std::size_t size, int world_size, const DistributedSamplerOptions& options) {
    for (int rank = 0; rank < world_size; ++rank) samplers_.emplace_back(size, world_size, rank, options);
  }

  void begin(DataPosition position) {
    for (auto& sampler : samplers_) {
      sampler.set_position(position);
      sampler.reset();
    }
  }

  /// At most `batches` of each rank; all when not said. Counts what is taken.
  void take(std::size_t batch_size, std::map<std::size_t, int>& taken,
            std::size_t batches = std::numeric_limits<std::size_t>::max()) {
    for (auto& sampler : samplers_) {
      for (std::size_t batch = 0; batch < batches; ++batch) {
        const auto indices = sampler.next(batch_size);
        if (!indices) break;
        for (const auto index : *indices) ++taken[index];
      }
    }
  }

  [[nodiscard]] DataPosition position() const { return samplers_.front().position(); }

 private:
  std::vector<DistributedSampler> samplers_;
};

struct Trial {
  std::size_t size;
  std::vector<int> worlds;
  std::vector<std::size_t> batch_sizes, batches;  // of each world

  [[nodiscard]] std::string text() const {
    std::string text = std::to_string(size) + " samples";
    for (std::size_t part = 0; part < worlds.size(); ++part) {
      text += "; " + std::to_string(batches[part]) + " batches of " + std::to_string(batch_sizes[part]) + " on " +
              std::to_string(worlds[part]) + " ranks";
    }
    return text;
  }
};

Trial any_trial(std::minstd_rand& random) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
  Trial trial{below(200), {}, {}, {}};
  for (std::size_t part = 0; part < 3; ++part) {
    trial.worlds.push_back(1 + static_cast<int>(below(9)));
    trial.batch_sizes.push_back(1 + below(12));
    trial.batches.push_back(below(6));
  }
  return trial;
}

/// How often each sample is taken in an epoch that begins on one world, goes on on others, and is finished on the last.
std::map<std::size_t, int> run(const Trial& trial, Remainder remainder) {
  std::map<std::size_t, int> taken;
  DataPosition position{3, 0};
  for (std::size_t part = 0; part < trial.worlds.size() && position.epoch == 3; ++part) {
    Ranks ranks(trial.size, trial.worlds[part], {.seed = 11, .remainder = remainder});
    ranks.begin(position);
    const bool last = part + 1 == trial.worlds.size();
    if (last) {
      ranks.take(trial.batch_sizes[part], taken);
    } else {
      ranks.take(trial.batch_sizes[part], taken, trial.batches[part]);
    }
    position = ranks.position();
  }
  return taken;
}

TEST(SamplerPosition, EverySampleIsTakenOnceWhenTheWorldChangesWithinAnEpoch) {
  std::minstd_rand random(1);
  for (int turn = 0; turn < 3000; ++turn) {
    const auto trial = any_trial(random);
    const auto taken = run(trial, Remainder::kUneven);
    ASSERT_EQ(taken.size(), trial.size) << trial.text();
    for (const auto& [sample, times] : taken) ASSERT_EQ(times, 1) << "sample " << sample << " of " << trial.text();
  }
}

TEST(SamplerPosition, OnlyThePaddingAtTheEndIsTakenTwice) {
  std::minstd_rand random(2);
  for (int turn = 0; turn < 3000; ++turn) {
    const auto trial = any_trial(random);
    const auto taken = run(trial, Remainder::kPad);
    ASSERT_EQ(taken.size(), trial.size) << trial.text();
    std::size_t total = 0;
    for (const auto& [sample, times] : taken) total += static_cast<std::size_t>(times);
    const auto most = static_cast<std::size_t>(*std::max_element(trial.worlds.begin(), trial.worlds.end())) - 1;
    ASSERT_LE(total, trial.size + most) << trial.text();
  }
}

TEST(SamplerPosition, OnlyWhatDoesNotDivideIsDropped) {
  std::minstd_rand random(3);
  for (int turn = 0; turn < 3000; ++turn) {
    const auto trial = any_trial(random);
    const auto taken = run(trial, Remainder::kDrop);
    const auto most = static_cast<std::size_t>(*std::max_element(trial.worlds.begin(), trial.worlds.end())) - 1;
    ASSERT_GE(taken.size() + most, trial.size) << trial.text();
    for (const auto& [sample, times] : taken) ASSERT_EQ(times, 1) << "sample " << sample << " of " << trial.text();
  }
}

TEST(SamplerPosition, GoesOnInTheOrderOfTheEpoch) {
  DistributedSampler alone(20, 1, 0, {.seed = 5});
  const auto order = alone.indices(4);
  DistributedSampler sampler(20, 2, 1, {.seed = 5});
  sampler.set_position({4, 6});
  sampler.reset();
  EXPECT_EQ(sampler.next(3), (Indices{order[7], order[9], order[11]}));
  EXPECT_EQ(sampler.position(), (DataPosition{4, 12}));
  sampler.reset();
  EXPECT_EQ(sampler.epoch(), 5U);
  EXPECT_EQ(sampler.next(100), sampler.indices(5)) << "the next epoch is whole";
}

TEST(SamplerPosition, OfAFinishedEpochIsTheNextOne) {
  DistributedSampler sampler(10, 2, 0);
  EXPECT_EQ(sampler.position(), (DataPosition{0, 0})) << "before the first";
  sampler.reset();
  EXPECT_EQ(sampler.position(), (DataPosition{0, 0}));
  (void)sampler.next(5);
  EXPECT_EQ(sampler.position(), (DataPosition{1, 0}));
  sampler.set_position({7, 10});
  sampler.reset();
  EXPECT_EQ(sampler.epoch(), 8U);
  EXPECT_EQ(sampler.next(100), sampler.indices(8));
}

TEST(SamplerSubset, IsAllThatIsDrawn) {
  const Indices subset = {3, 1, 4, 15, 9, 2, 6};
  std::map<std::size_t, int> taken;
  for (int rank = 0; rank < 3; ++rank) {
    DistributedSampler sampler(20, 3, rank, {.remainder = Remainder::kUneven, .subset = subset});
    for (const auto index : sampler.indices(2)) ++taken[index];
  }
  EXPECT_EQ(taken.size(), subset.size());
  for (const auto sample : subset) EXPECT_EQ(taken[sample], 1) << sample;
  const DistributedSampler in_order(20, 1, 0, {.shuffle = false, .subset = subset});
  EXPECT_EQ(in_order.indices(0), subset);
  EXPECT_EQ(DistributedSampler(20, 2, 0, {.subset = Indices()}).size(), 0U);
}

TEST(SamplerWeights, DrawInProportionAndTheSameForEveryWorldSize) {
  const DistributedSamplerOptions options = {.seed = 3, .weights = {0, 1, 0, 3, 0}, .draws = 40000};
  const DistributedSampler alone(5, 1, 0, options);
  const auto order = alone.indices(0);
  std::map<std::size_t, int> drawn;
  for (const auto sample : order) ++drawn[sample];
  EXPECT_EQ(drawn.size(), 2U) << "a sample of weight 0 was drawn";
  EXPECT_NEAR(drawn[1], 10000, 350);  // four standard deviations
  const auto mine = DistributedSampler(5, 4, 2, options).indices(0);
  for (std::size_t turn = 0; turn < mine.size(); ++turn) ASSERT_EQ(mine[turn], order[4 * turn + 2]);
  EXPECT_NE(alone.indices(1), order);
  EXPECT_EQ(DistributedSampler(3, 1, 0, {.weights = {1, 1, 1}}).size(), 3U) << "as many as there are";
}

TEST(SamplerWeights, AreOfTheSubset) {
  const DistributedSampler sampler(10, 1, 0, {.subset = Indices{7, 8}, .weights = {1, 0}, .draws = 5});
  EXPECT_EQ(sampler.indices(0), Indices(5, 7));
}

TEST(SamplerOrder, OfTheUserIsSharedOut) {
  const auto backwards = [](std::size_t epoch) { return Indices{9, 8, 7, 6, 5 + epoch}; };
  DistributedSampler sampler(10, 2, 1, {.remainder = Remainder::kUneven, .order = backwards});
  EXPECT_EQ(sampler.size(), 2U);
  sampler.set_epoch(2);
  sampler.reset();
  EXPECT_EQ(sampler.next(10), (Indices{8, 6}));
  EXPECT_EQ(DistributedSampler(10, 1, 0, {.order = backwards}).indices({2, 3}), (Indices{6, 7}));
}

TEST(SamplerOptions, ThatDoNotFitAreRefused) {
  const auto refused = [](const DistributedSamplerOptions& options) {
    try {
      DistributedSampler(3, 1, 0, options);
      return std::string("accepted");
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused({.subset = Indices{1, 3}}), "sample 3 of the subset is not in a data set of 3");
  EXPECT_EQ(refused({.weights = {1, 1}}), "2 weights for 3 samples");
  EXPECT_EQ(refused({.weights = {1, -1, 1}}), "the weight of sample 1 is -1.000000");
  EXPECT_EQ(refused({.weights = {0, 0, 0}}), "the weights of the samples add up to 0.000000");
  EXPECT_EQ(refused({.draws = 5}), "samples are drawn by weights only");
  EXPECT_EQ(refused({.subset = Indices{1}, .order = [](std::size_t) { return Indices(); }}),
            "a sampler has an order of its own, or a subset and weights, not both");
}

}  // namespace
}  // namespace lrun::detail
