#include "runtime/collectives/bootstrap/shared_gpu.h"

#include <gtest/gtest.h>

namespace lrun::detail {
namespace {

TEST(DescribeSharedGpu, IsNothingWhereEachRankHasItsOwn) {
  EXPECT_EQ(describe_shared_gpu({{"a", "0000:18:00.0"}, {"a", "0000:2A:00.0"}, {"b", "0000:18:00.0"}}, {}), "");
  EXPECT_EQ(describe_shared_gpu({}, {}), "");
}

TEST(DescribeSharedGpu, NamesTheRanksTheGpuAndTheAlternative) {
  EXPECT_EQ(describe_shared_gpu({{"a", "0000:18:00.0"}, {"a", "0000:18:00.0"}}, {}),
            "backend 'nccl' needs a GPU for each rank, and ranks 0 and 1 share one (PCI address 0000:18:00.0): start "
            "fewer ranks on that host, or use backend 'gloo'");
}

TEST(DescribeSharedGpu, NamesTheRanksOfTheGroupAbove) {
  const GroupOptions options{.ranks_above = {4, 5, 6, 7}};
  const std::string text = describe_shared_gpu({{"a", "1"}, {"b", "1"}, {"b", "2"}, {"b", "1"}}, options);
  EXPECT_NE(text.find("ranks 5 and 7 share one (PCI address 1)"), std::string::npos) << text;
}

TEST(DescribeSharedGpu, LeavesOutGpusThatAreNotKnown) {
  EXPECT_EQ(describe_shared_gpu({{"a", ""}, {"a", ""}}, {}), "");
}

}  // namespace
}  // namespace lrun::detail
