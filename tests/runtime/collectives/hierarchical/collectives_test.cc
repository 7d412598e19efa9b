// Groups over several hosts, which are processes of this machine with different host names.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/collectives/hierarchical/host_layout.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Runs `body` as ranks on these hosts, by rank, with the backend that 'auto' takes.
std::vector<std::string> run_on(const std::vector<std::string>& hosts, const std::string& name, const RankBody& body) {
  std::vector<RankProcess> ranks;
  const int world_size = static_cast<int>(hosts.size());
  for (int rank = 0; rank < world_size; ++rank) {
    GroupOptions options = group_of(rank, world_size, name, 60s);
    options.host = hosts[static_cast<std::size_t>(rank)];
    ranks.emplace_back(options, body, "auto");
  }
  std::vector<std::string> errors;
  for (RankProcess& rank : ranks) errors.push_back(rank.result());
  return errors;
}

TEST(HostLayout, KeepsRanksOfAHostTogether) {
  const HostLayout layout = HostLayout::of({"a", "b", "a", "c", "b", "a"});
  EXPECT_EQ(layout, (HostLayout{{{0, 2, 5}, {1, 4}, {3}}}));
  EXPECT_EQ(layout.hosts(), 3);
  EXPECT_EQ(layout.most_ranks(), 3);
  EXPECT_EQ(layout.host_of(4), 1);
  EXPECT_EQ(layout.place_in_host(5), 2);
  EXPECT_EQ(layout.leaders(), (std::vector{0, 1, 3}));
}

TEST(Auto, TakesTheBackendThatFitsTheHosts) {
  const auto expect_name = [](const std::string& expected) {
    return [expected](Collectives& group) { require(group.name() == expected, group.name()); };
  };
  EXPECT_THAT(run_on({"a", "a"}, "auto-one", expect_name("shm")), Each(std::string()));
  EXPECT_THAT(run_on({"a", "b"}, "auto-two", expect_name("gloo")), Each(std::string()));
  EXPECT_THAT(run_on({"a", "b", "b"}, "auto-mixed", expect_name("shm+gloo")), Each(std::string()));
}

TEST(Hierarchical, AveragesOverRanksAndNotOverHosts) {
  EXPECT_THAT(run_on({"a", "b", "b", "b"}, "averages",
                     [](Collectives& group) {
                       for (at::ScalarType dtype : {at::kHalf, at::kFloat, at::kDouble}) {
                         for (std::int64_t count : {1, 300'007}) {
                           at::Tensor tensor = at::full({count}, group.rank() == 0 ? 60'000 : 20'000, dtype);
                           group.all_reduce(tensor, ReduceOp::kAverage)->wait();  // their sum is no float16
                           require_equal(tensor, at::full({count}, 30'000, dtype), "the average");
                         }
                       }
                     }),
              Each(std::string()));
}

TEST(Hierarchical, KeepsTheOrderOfRanksThatHostsInterleave) {
  EXPECT_THAT(run_on({"a", "b", "a", "c", "b"}, "interleaved",
                     [](Collectives& group) {
                       const at::Tensor mine = at::full({3}, group.rank(), at::kLong);
                       at::Tensor all = at::full({5, 3}, -1, at::kLong);
                       group.all_gather(all, mine);
                       for (int rank = 0; rank < 5; ++rank) {
                         require_equal(all[rank], at::full({3}, rank, at::kLong), "the row of a rank");
                       }
                       at::Tensor input = at::arange(5, at::kLong).mul(100).unsqueeze(1).add(group.rank());
                       at::Tensor output = at::full({1}, 0, at::kLong);
                       group.reduce_scatter(output, input.contiguous(), ReduceOp::kMax);
                       require_equal(output, at::full({1}, 100 * group.rank() + 4, at::kLong), "the own row");
                       for (int root = 0; root < 5; ++root) {
                         at::Tensor tensor = at::full({7}, group.rank(), at::kInt);
                         group.broadcast(tensor, root);
                         require_equal(tensor, at::full({7}, root, at::kInt), "what the root had");
                       }
                     }),
              Each(std::string()));
}

TEST(Hierarchical, NamesARankThatIsKilledToAllHosts) {
  SharedCounter steps;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    GroupOptions options = group_of(rank, 4, "killed-elsewhere", 90s);
    options.host = rank < 2 ? "a" : "b";
    ranks.emplace_back(
        options,
        [&](Collectives& group) {
          const at::Tensor tensor = at::ones({100'000}, at::kFloat);
          for (;;) {
            group.all_reduce(tensor, ReduceOp::kMax)->wait();
            if (group.rank() == 3) steps.add();
          }
        },
        "shm+gloo");
  }
  steps.wait_for_at_least(2);
  ranks[3].kill();
  const std::string text = "rank 3 (pid " + std::to_string(ranks[3].pid()) + ") ended during all_reduce #";
  for (const int rank : {0, 1, 2}) {
    EXPECT_THAT(ranks[static_cast<std::size_t>(rank)].result(), AllOf(StartsWith("PeerLost: "), HasSubstr(text)));
  }
}

}  // namespace
}  // namespace lrun::detail::testing
