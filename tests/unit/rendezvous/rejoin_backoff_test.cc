#include "rendezvous/rejoin_backoff.h"

#include <gtest/gtest.h>

#include <chrono>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using test::node_at;

const SteadyTime kDeparted{std::chrono::seconds(10'000)};

TEST(RejoinBackoff, BeginsWithTheFifthDepartureAndEndsTenMinutesAfterTheFirst) {
  RejoinBackoff backoff;
  const JoinRecord node = node_at("10.0.0.1");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(backoff.wait(node, kDeparted + i * 1s), 0ms);
    backoff.note(node, kDeparted + i * 1s);
  }
  EXPECT_EQ(backoff.wait(node, kDeparted + 4s), 596s);
  EXPECT_EQ(backoff.wait(node, kDeparted + 4500ms), 596s) << "in whole seconds";
  EXPECT_EQ(backoff.wait(node, kDeparted + 10min), 0ms);
}

TEST(RejoinBackoff, TellsNodesApartByNameAddressAndRank) {
  RejoinBackoff backoff;
  for (int i = 0; i < 5; ++i) backoff.note(node_at("10.0.0.1", 1, 0), kDeparted);
  EXPECT_GT(backoff.wait(node_at("10.0.0.1", 1, 0), kDeparted), 0ms);
  EXPECT_EQ(backoff.wait(node_at("10.0.0.1", 1, 1), kDeparted), 0ms);
  EXPECT_EQ(backoff.wait(node_at("10.0.0.1"), kDeparted), 0ms);
  EXPECT_EQ(backoff.wait(node_at("10.0.0.2", 1, 0), kDeparted), 0ms);
}

}  // namespace
}  // namespace lrun::launcher
