#include "rendezvous/failed_start.h"

#include <gtest/gtest.h>

#include <chrono>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

const SteadyTime kFailed{std::chrono::seconds(100)};

TEST(FailedStart, IsReportedToEachNodeOfItsJobThatComesLater) {
  FailedStart failed;
  EXPECT_EQ(failed.report_for(test::node_at("10.0.0.1")), std::nullopt);
  failed.fail(test::node_at("10.0.0.1"), "its report", 2, kFailed);
  JoinRecord other = test::node_at("10.0.0.9");
  other.run_name = "another";
  EXPECT_EQ(failed.report_for(other), std::nullopt);
  EXPECT_TRUE(failed.awaits_nodes());
  EXPECT_EQ(failed.report_for(test::node_at("10.0.0.2")), "its report");
  EXPECT_TRUE(failed.awaits_nodes());
  EXPECT_EQ(failed.report_for(test::node_at("10.0.0.3")), "its report");
  EXPECT_FALSE(failed.awaits_nodes());
}

TEST(FailedStart, WaitsTenSecondsForThem) {
  FailedStart failed;
  failed.fail(test::node_at("10.0.0.1"), "", 1, kFailed);
  EXPECT_EQ(failed.deadline(), kFailed + 10s);
  failed.advance(kFailed + 9s);
  EXPECT_TRUE(failed.awaits_nodes());
  failed.advance(kFailed + 10s);
  EXPECT_FALSE(failed.awaits_nodes());
  EXPECT_EQ(failed.deadline(), std::nullopt);
}

}  // namespace
}  // namespace lrun::launcher
