// After an exchange every rank has the tensors of all shards, whatever their sizes.
#include "runtime/ddp/shard_exchange.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/support/backend_ranks.h"
#include "runtime/support/recording_collectives.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

using testing::name_of_group;
using testing::require_equal;

using Shards = std::vector<std::vector<at::Tensor>>;

/// Tensors as their owner has them, and zeros in their place on other ranks. Each rank has one of every type, one that
/// is not contiguous and one without elements; rank 0 also one that is larger than all others together.
Shards shards_of(int world_size, int here) {
  Shards shards;
  for (int owner = 0; owner < world_size; ++owner) {
    const auto filled = [&](std::int64_t count, at::ScalarType dtype) {
      return (at::arange(count) % 100 + owner + 1).mul(owner == here || here < 0 ? 1 : 0).to(dtype);
    };
    std::vector<at::Tensor> shard = {filled(1, at::kBFloat16).view({}), filled(7 + owner, at::kFloat),
                                     filled(12, at::kDouble).view({3, 4}).t(), filled(0, at::kFloat),
                                     filled(9, at::kByte)};
    if (owner == 0) shard.insert(shard.begin(), filled(300'000, at::kFloat));
    shards.push_back(std::move(shard));
  }
  return shards;
}

class ShardExchanges : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(ShardExchanges, GiveAllRanksAllTensors) {
  const auto& [backend, world_size] = GetParam();
  for (const bool at_once : {false, true}) {
    const auto errors = testing::run_ranks(backend, world_size, [at_once](Collectives& group) {
      const Shards shards = shards_of(group.world_size(), group.rank());
      const Shards expected = shards_of(group.world_size(), -1);
      ShardExchange(shards, at_once).run(group);
      for (std::size_t owner = 0; owner < shards.size(); ++owner) {
        for (std::size_t index = 0; index < shards[owner].size(); ++index) {
          require_equal(shards[owner][index], expected[owner][index],
                        "tensor " + std::to_string(index) + " of rank " + std::to_string(owner));
        }
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(errors.size())) << at_once;
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, ShardExchanges,
                         ::testing::Combine(::testing::Values("threads", "shm", "gloo", "shm+gloo"),
                                            ::testing::Values(2, 3, 4)),
                         name_of_group);

/// What rank 0 passes to the group in an exchange of shards of floats: bytes in all_gathers, bytes in broadcasts.
std::pair<std::size_t, std::size_t> sent_bytes(const std::vector<std::int64_t>& counts) {
  std::size_t gathered = 0;
  std::size_t broadcast = 0;
  test::run_ranks(static_cast<int>(counts.size()), [&](int rank, Collectives& group) {
    test::RecordingCollectives recorded(group, [&](const std::string& operation, const at::Tensor& tensor) {
      if (rank == 0) (operation == "all_gather" ? gathered : broadcast) += tensor.nbytes();
    });
    Shards shards;
    for (const auto count : counts) {
      shards.emplace_back();
      for (std::int64_t sent = 0; sent < count; sent += 1000) {
        shards.back().push_back(at::zeros({std::min<std::int64_t>(1000, count - sent)}));
      }
    }
    ShardExchange(shards, true).run(recorded);
  });
  return {gathered, broadcast};
}

TEST(ShardExchange, GathersWhatAllRanksHave) {
  EXPECT_EQ(sent_bytes({50'000, 50'000, 50'000}), std::pair(std::size_t{200'000}, std::size_t{0}));
  EXPECT_EQ(sent_bytes({3'000'000, 3'000'000}).first, 12'000'000U);  // more than there is memory at once
}

TEST(ShardExchange, BroadcastsWhatARankHasBeyondTheOthers) {
  const auto [gathered, broadcast] = sent_bytes({50'000, 1'000, 1'000});
  EXPECT_EQ(gathered, 4'000U);
  EXPECT_GE(broadcast, 49'000U * 4);  // packed with padding
  EXPECT_LE(broadcast, 49'000U * 4 + 1024);
  EXPECT_EQ(sent_bytes({50'000, 0}).first, 0U);
}

}  // namespace
}  // namespace lrun::detail
