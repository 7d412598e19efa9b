// How batches are split, moved and gathered.
#include "lrun/batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <torch/data/example.h>

#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lrun::detail {
namespace {

using Sizes = std::vector<std::int64_t>;

TEST(SplitEvenly, GivesPartsThatDifferByOneAtMost) {
  const std::vector<std::tuple<std::int64_t, std::size_t, Sizes>> cases = {{32, 2, {16, 16}},
                                                                           {32, 4, {8, 8, 8, 8}},
                                                                           {7, 8, {1, 1, 1, 1, 1, 1, 1}},
                                                                           {7, 2, {4, 3}},
                                                                           {7, 4, {2, 2, 2, 1}},
                                                                           {10, 4, {3, 3, 2, 2}},
                                                                           {5, 4, {2, 1, 1, 1}},
                                                                           {9, 8, {2, 1, 1, 1, 1, 1, 1, 1}},
                                                                           {3, 1, {3}},
                                                                           {1, 3, {1}},
                                                                           {0, 3, {0}}};
  for (const auto& [samples, devices, sizes] : cases) {
    EXPECT_EQ(split_evenly(samples, devices), sizes) << samples << " over " << devices;
  }
  EXPECT_THROW(static_cast<void>(split_evenly(3, 0)), std::invalid_argument);
}

TEST(SplitEvenly, LosesNoSample) {
  for (std::int64_t samples = 1; samples < 40; ++samples) {
    for (std::size_t devices = 1; devices < 12; ++devices) {
      const auto sizes = split_evenly(samples, devices);
      std::int64_t sum = 0;
      for (const auto size : sizes) sum += size;
      EXPECT_EQ(sum, samples);
      EXPECT_EQ(sizes.size(), std::min(devices, static_cast<std::size_t>(samples)));
      EXPECT_LE(sizes.front() - sizes.back(), 1) << samples << " over " << devices;
    }
  }
}

struct Sentence {
  at::Tensor words;
  std::vector<at::Tensor> layers;
  std::string language;

  template <class Visitor>
  void for_each_tensor(Visitor&& visit) {
    visit(words);
    for (auto& layer : layers) visit(layer);
  }
};

struct Opaque {
  at::Tensor inside;
  [[nodiscard]] Opaque to(at::Device device) const { return {inside.to(device)}; }
};

at::Tensor rows(std::int64_t count) { return at::arange(count * 8, at::kFloat).view({count, 8}); }

TEST(SplitBatch, OfATensorGivesViews) {
  const auto batch = rows(32);
  const auto parts = split_batch(batch, 4);
  ASSERT_EQ(parts.size(), 4U);
  for (const auto& part : parts) {
    EXPECT_EQ(part.sizes(), at::IntArrayRef({8, 8}));
    EXPECT_TRUE(part.is_alias_of(batch)) << "copied";
  }
  EXPECT_TRUE(at::cat(parts).equal(batch));
}

TEST(SplitBatch, FindsTensorsAtAnyDepth) {
  using Nested = std::tuple<std::pair<at::Tensor, std::vector<Sentence>>, std::map<std::string, at::Tensor>,
                            torch::data::Example<>, std::array<at::Tensor, 1>, int>;
  const at::Tensor data = rows(7);
  const Nested batch{
      {data, {Sentence{data + 1, {data + 2}, "en"}}}, {{"mask", data + 3}}, {data + 4, data + 5}, {data + 6}, 9};
  const auto parts = split_batch(batch, 2);
  ASSERT_EQ(parts.size(), 2U);
  const auto& [pair, named, example, array, number] = parts[1];
  const auto last = data.narrow(0, 4, 3);
  EXPECT_TRUE(pair.first.equal(last));
  EXPECT_TRUE(pair.second.at(0).words.equal(last + 1));
  EXPECT_TRUE(pair.second.at(0).layers.at(0).equal(last + 2));
  EXPECT_EQ(pair.second.at(0).language, "en");
  EXPECT_TRUE(named.at("mask").equal(last + 3));
  EXPECT_TRUE(example.data.equal(last + 4));
  EXPECT_TRUE(example.target.equal(last + 5));
  EXPECT_TRUE(array[0].equal(last + 6));
  EXPECT_EQ(number, 9) << "what is no tensor is copied";
}

TEST(SplitBatch, GivesTensorsWithoutDimensionsToEveryPart) {
  const auto parts = split_batch(std::pair(rows(3), at::full({}, 0.5)), 8);
  ASSERT_EQ(parts.size(), 3U);
  for (const auto& part : parts) EXPECT_EQ(part.second.item<double>(), 0.5);
}

TEST(SplitBatch, LeavesUndefinedTensorsUndefined) {
  const auto parts = split_batch(std::pair(rows(3), at::Tensor()), 2);
  EXPECT_FALSE(parts.at(1).second.defined());
}

TEST(SplitBatch, RefusesTensorsWithDifferentNumbersOfSamples) {
  try {
    static_cast<void>(split_batch(std::pair(rows(7), rows(8)), 2));
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("7 and with 8 samples"), std::string::npos) << error.what();
  }
}

TEST(SplitBatch, RefusesATypeThatItCannotSeeInto) {
  try {
    static_cast<void>(split_batch(std::vector<Opaque>{{rows(7)}}, 2));
    FAIL() << "accepted";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("Opaque' cannot be split over several devices: give it a member for_each"),
              std::string::npos)
        << error.what();
  }
}

TEST(ToDevice, MovesTypesThatMoveThemselves) {
  const auto batch = std::vector<Opaque>{{rows(2)}};
  EXPECT_TRUE(to_device(batch, at::kCPU).at(0).inside.equal(batch.at(0).inside));
}

TEST(ToDevice, SharesWhatIsThere) {
  const auto batch = Sentence{rows(2), {rows(2)}, ""};
  const auto moved = to_device(batch, at::kCPU);
  EXPECT_TRUE(moved.words.is_same(batch.words));
  EXPECT_TRUE(moved.layers[0].is_same(batch.layers[0]));
}

}  // namespace
}  // namespace lrun::detail
