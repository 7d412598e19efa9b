#include "store/etcd_endpoints.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Failure = EtcdEndpoints::Failure;

const SteadyTime kAsked{std::chrono::seconds(100)};

EtcdEndpoints members(int count, Duration start = 0ms) {
  std::vector<EtcdEndpoint> endpoints;
  for (int i = 0; i < count; ++i) endpoints.push_back({"etcd" + std::to_string(i), 2379});
  return {endpoints, start};
}

TEST(EtcdEndpoints, AreAskedInTurnWithAPauseBehindTheLast) {
  EtcdEndpoints endpoints = members(2);
  EXPECT_EQ(endpoints.text(), "etcd0 port 2379");
  EXPECT_FALSE(endpoints.next());
  EXPECT_EQ(endpoints.current().host, "etcd1");
  EXPECT_TRUE(endpoints.next()) << "all have failed";
  EXPECT_EQ(endpoints.current().host, "etcd0");
  endpoints.answered();
  EXPECT_FALSE(endpoints.next()) << "one has answered since";
}

TEST(EtcdEndpoints, AreGivenUpWhereAllAreMistakesOneAfterAnother) {
  EtcdEndpoints endpoints = members(2);
  EXPECT_TRUE(endpoints.failed(Failure::kMistake, kAsked));
  EXPECT_TRUE(endpoints.failed(Failure::kPassing, kAsked));
  EXPECT_TRUE(endpoints.failed(Failure::kMistake, kAsked)) << "the one between them may be an etcd";
  EXPECT_FALSE(endpoints.failed(Failure::kMistake, kAsked));
}

TEST(EtcdEndpoints, HaveATimeToStartInWhichTheyMayRefuse) {
  EtcdEndpoints endpoints = members(1, 10s);
  EXPECT_TRUE(endpoints.failed(Failure::kRefused, kAsked));
  EXPECT_TRUE(endpoints.failed(Failure::kRefused, kAsked + 9s));
  EXPECT_TRUE(endpoints.are_refused());
  EXPECT_FALSE(endpoints.failed(Failure::kRefused, kAsked + 10s));
  EtcdEndpoints slow = members(1, 10s);
  EXPECT_TRUE(slow.failed(Failure::kRefused, kAsked));
  EXPECT_TRUE(slow.failed(Failure::kPassing, kAsked + 9s));
  EXPECT_TRUE(slow.failed(Failure::kRefused, kAsked + 10s)) << "somebody listened in between";
  EtcdEndpoints known = members(1, 10s);
  known.answered();
  EXPECT_TRUE(known.failed(Failure::kRefused, kAsked));
  EXPECT_TRUE(known.failed(Failure::kRefused, kAsked + 1h)) << "it is being started again";
  EXPECT_FALSE(known.are_refused());
  EXPECT_TRUE(members(1).failed(Failure::kRefused, kAsked + 1h)) << "there is no such limit";
}

TEST(EtcdEndpoints, MayCloseTenConnectionsEachWithoutAWord) {
  EtcdEndpoints endpoints = members(2);
  for (int i = 1; i < 20; ++i) EXPECT_TRUE(endpoints.failed(Failure::kWordless, kAsked)) << i;
  EXPECT_FALSE(endpoints.failed(Failure::kWordless, kAsked));
}

}  // namespace
}  // namespace lrun::launcher
