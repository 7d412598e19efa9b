#include "run/watch_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "unit/run/attempt_fixture.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

/// An attempt whose lines are watched.
class WatchMonitorTest : public AttemptFixture {
 protected:
  void watch(const std::string& script, const std::vector<std::string>& texts, int workers = 1) {
    plan_for(script, workers);
    plan->grace.value = Duration(20'000);
    for (const std::string& text : texts) {
      rules_.push_back(std::get<WatchRule>(parse_watch_rule(text)));
      rules_.back().origin = "--watch";
    }
    supervise();
    monitor.emplace(
        WatchMonitor::Facts{.loop = loop,
                            .rules = rules_,
                            .sink = sink,
                            .events = events_,
                            .attempt = [this]() -> Attempt& { return *attempt; },
                            .stop = [this](const TimeIsOver& reason) { attempt->supervisor().handle(reason); },
                            .is_blocked = [this] { return blocked; }});
    logs->set_events({.drained = [this](int) { attempt->supervisor().check_finished(); },
                      .printed = [this](int rank, LogStream stream,
                                        std::string_view bytes) { return monitor->printed(rank, stream, bytes); },
                      .noticed = [this] { monitor->react(); }});
  }
  RunEnd end() { return attempt->supervisor().outcome().end; }

  RecordingSink sink;
  bool blocked = false;
  std::optional<WatchMonitor> monitor;

 private:
  EventLog events_;
  std::vector<WatchRule> rules_;
};

constexpr const char* kGoesOn = "trap 'exit 0' TERM; while :; do sleep 0.01; done";

TEST_F(WatchMonitorTest, StopsTheRunForTheRankThatPrintedIt) {
  watch(std::string("[ $RANK = 1 ] && echo loss=nan; ") + kGoesOn, {"loss=([^ ]+)"}, 2);
  run_until_finished();
  EXPECT_EQ(end().kind, RunEnd::Kind::kWatched);
  EXPECT_EQ(end().rank, 1);
  EXPECT_EQ(end().who, "rank 1 printed nan: 'loss=nan' (--watch 'loss=([^ ]+)')");
  EXPECT_TRUE(attempt->supervisor().state().unwanted);
}

TEST_F(WatchMonitorTest, SeesTheLastWordsOfARankThatEndsWell) {
  watch("printf loss=nan", {"loss=([^ ]+)"});
  run_until_finished();
  EXPECT_EQ(end().kind, RunEnd::Kind::kWatched);
}

TEST_F(WatchMonitorTest, LeavesARankItsOwnError) {
  watch("echo CUDA error; exit 3", {"CUDA error"});
  run_until_finished();
  EXPECT_EQ(end().kind, RunEnd::Kind::kWorkerFailed);
  EXPECT_TRUE(attempt->supervisor().state().unwanted) << "the rule says that the run stops";
}

TEST_F(WatchMonitorTest, LetsARuleThatStopsWinOverOneThatRestarts) {
  watch(std::string("echo loss=nan; ") + kGoesOn, {"loss=([^ ]+) => nan restart", "loss => stop"});
  run_until_finished();
  EXPECT_THAT(end().who, HasSubstr("(--watch 'loss => stop')"));
  EXPECT_TRUE(attempt->supervisor().state().unwanted);
}

TEST_F(WatchMonitorTest, WatchesForAShortSilenceBesideALongOne) {
  watch(std::string("echo epoch; sleep 0.05; echo step; ") + kGoesOn,
        {"epoch => silent 1h", "step => silent 200ms restart"});
  run_until_finished();
  EXPECT_THAT(end().who, HasSubstr("rank 0 printed nothing like 'step' for 200ms"));
  EXPECT_FALSE(attempt->supervisor().state().unwanted);
}

TEST_F(WatchMonitorTest, HearsNoSilenceWhileNobodyReads) {
  blocked = true;
  watch("echo step; sleep 0.7", {"step => silent 200ms"});
  run_until_finished();
  EXPECT_EQ(end().kind, RunEnd::Kind::kSucceeded);
}

TEST_F(WatchMonitorTest, WarnsOnly) {
  watch("echo loss=3", {"loss=([^ ]+) => > 2 warn"});
  run_until_finished();
  EXPECT_EQ(end().kind, RunEnd::Kind::kSucceeded);
  EXPECT_THAT(sink.text(), HasSubstr("rank 0 printed 3, above 2: 'loss=3' (--watch 'loss=([^ ]+) => > 2 warn')"));
}

}  // namespace
}  // namespace lrun::launcher
