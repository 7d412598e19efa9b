#include "run/time_limits.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "support/log_test_support.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

class TimeLimitsTest : public ::testing::Test {
 protected:
  TimeLimitsTest() : plan(plan_of(request_for("2"), cpu_node())) {}

  /// Runs the loop until a limit is over, or until nothing can happen any more.
  std::optional<RunEnd> run() {
    const TimeLimit limit(loop);
    const EventLoop::Timer end = loop.after(Duration(100), [this] { loop.stop(); });
    loop.run();
    return over;
  }

  EventLoop loop;
  LaunchPlan plan;
  std::optional<RunEnd> over;
  TimeLimits limits{loop, plan, [this](const RunEnd& end) {
                      over = end;
                      loop.stop();
                    }};
};

TEST_F(TimeLimitsTest, WithoutLimitsNothingHappens) {
  plan.timeout.value = plan.start_timeout.value = Duration(0);
  limits.begin_run();
  limits.begin_attempt([] { return std::vector<int>{0}; });
  EXPECT_FALSE(run());
}

TEST_F(TimeLimitsTest, TheLimitOfTheRunIsTold) {
  plan.timeout.value = Duration(10);
  limits.begin_run();
  EXPECT_EQ(run(), (RunEnd{.kind = RunEnd::Kind::kTimedOut, .limit_ms = 10}));
}

TEST_F(TimeLimitsTest, TheLimitOfTheStartNamesTheMissingRanks) {
  plan.start_timeout.value = Duration(10);
  limits.begin_attempt([] { return std::vector<int>{1, 2, 3, 7}; });
  EXPECT_EQ(run(), (RunEnd{.kind = RunEnd::Kind::kStartTimedOut, .limit_ms = 10, .who = "ranks 1-3,7"}));
}

TEST_F(TimeLimitsTest, AStartThatIsCompleteHasNoLimit) {
  plan.start_timeout.value = Duration(10);
  limits.begin_attempt([] { return std::vector<int>(); });
  EXPECT_FALSE(run());
}

TEST_F(TimeLimitsTest, AnAttemptThatIsOverHasNoLimitAndTheRunHas) {
  plan.timeout.value = Duration(20);
  plan.start_timeout.value = Duration(10);
  limits.begin_run();
  limits.begin_attempt([] { return std::vector<int>{0}; });
  limits.end_attempt();
  const auto end = run();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, RunEnd::Kind::kTimedOut);
}

TEST_F(TimeLimitsTest, ARunThatIsOverHasNone) {
  plan.timeout.value = plan.start_timeout.value = Duration(10);
  limits.begin_run();
  limits.begin_attempt([] { return std::vector<int>{0}; });
  limits.end();
  EXPECT_FALSE(run());
}

}  // namespace
}  // namespace lrun::launcher
