#include "remote/host_ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace lrun::launcher {
namespace {

std::vector<bool> elsewhere(std::size_t hosts) { return std::vector<bool>(hosts, false); }

/// How many connections lead to each host.
std::vector<int> lengths(const std::vector<int>& ways) {
  std::vector<int> found;
  for (const int way : ways) found.push_back(way == kFromHead ? 1 : found[static_cast<std::size_t>(way)] + 1);
  return found;
}

TEST(HostWays, LeadFromTheHeadToAsManyAsItMayConnectTo) {
  EXPECT_EQ(host_ways({}, 2), std::vector<int>{});
  EXPECT_EQ(host_ways(elsewhere(2), 2), (std::vector<int>{kFromHead, kFromHead}));
  EXPECT_EQ(host_ways(elsewhere(32), kMostConnections), std::vector<int>(32, kFromHead));
}

TEST(HostWays, LeadToOthersThroughAllThatAreNearest) {
  EXPECT_EQ(host_ways(elsewhere(5), 2), (std::vector<int>{kFromHead, kFromHead, 0, 1, 0}));
  EXPECT_EQ(host_ways(elsewhere(9), 2), (std::vector<int>{kFromHead, kFromHead, 0, 1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(host_ways(elsewhere(4), 1), (std::vector<int>{kFromHead, 0, 1, 2}));
}

TEST(HostWays, LeaveOutTheMachineOfTheHead) {
  EXPECT_EQ(host_ways({true, false, false, false}, 2), (std::vector<int>{kFromHead, kFromHead, kFromHead, 1}));
  EXPECT_EQ(host_ways({false, false, true, false}, 1), (std::vector<int>{kFromHead, 0, kFromHead, 1}));
}

TEST(HostWays, AreShortAndBurdenNobody) {
  for (const std::size_t hosts : {33U, 40U, 1'056U, 1'057U, 5'000U}) {
    const std::vector<int> ways = host_ways(elsewhere(hosts), kMostConnections);
    std::map<int, std::size_t> behind;
    for (std::size_t i = 0; i < hosts; ++i) {
      ASSERT_LT(ways[i], static_cast<int>(i)) << "the way to a host is known before it";
      ++behind[ways[i]];
    }
    for (const auto& [host, count] : behind) EXPECT_LE(count, kMostConnections) << "of " << host;
    const std::vector<int> found = lengths(ways);
    EXPECT_EQ(*std::max_element(found.begin(), found.end()), hosts <= 1'056 ? 2 : 3) << hosts;
  }
}

}  // namespace
}  // namespace lrun::launcher
