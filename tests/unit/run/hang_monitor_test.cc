#include "run/hang_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/run/attempt_fixture.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

/// An attempt that hangs for a tenth of a second, and a look at its ranks that the test answers.
class HangMonitorTest : public AttemptFixture {
 protected:
  void watch(const std::string& script, OnHang on_hang, std::optional<std::vector<StackSample>> samples) {
    plan_for(script);
    plan->hang_timeout.value = Duration(100);
    plan->on_hang = on_hang;
    plan->grace.value = Duration(20'000);
    supervise();
    look_ = [this, samples = std::move(samples)](EventLoop&, const std::vector<RankProcess>& processes, LookKind kind,
                                                 SeenRanks seen) {
      EXPECT_EQ(processes.size(), 1U);
      EXPECT_EQ(kind, LookKind::kFull) << "the user wants to see the stacks";
      ++looks;
      auto timer = std::make_shared<EventLoop::Timer>();
      *timer = loop.after(Duration(0), [this, samples, seen = std::move(seen)] {
        seen(samples, "there is no debugger");
        loop.stop();
      });
      return timer;
    };
    monitor.emplace(loop, *plan, *attempt, *logs, sink, look_);
  }

  static std::vector<StackSample> in_read() {
    return {{.rank = 0, .pid = 7, .command = "train", .state = 'S', .threads = 1, .system_call = "read"}};
  }

  RecordingSink sink;
  int looks = 0;
  std::optional<HangMonitor> monitor;

 private:
  LookAtRanks look_;
};

constexpr const char* kHangs = "trap 'exit 0' TERM; while :; do sleep 0.01; done";

TEST_F(HangMonitorTest, PrintsAndKeepsTheStacksThenStopsTheRun) {
  watch(kHangs, OnHang::kKill, in_read());
  run_until_finished();
  EXPECT_EQ(looks, 1);
  EXPECT_THAT(sink.text(), HasSubstr("no progress for 100ms"));
  EXPECT_THAT(sink.text(), HasSubstr("read"));
  EXPECT_THAT(content_of(temporary / "attempt_0/stacks.txt"), HasSubstr("read"));
  const RunOutcome outcome = attempt->supervisor().outcome();
  EXPECT_EQ(outcome.end.kind, RunEnd::Kind::kHang);
  EXPECT_EQ(outcome.end.limit_ms, 100);
  EXPECT_THAT(outcome.end.who, HasSubstr("rank 0"));
  EXPECT_EQ(outcome.places.size(), 1U);
  EXPECT_TRUE(attempt->supervisor().state().unwanted);
}

TEST_F(HangMonitorTest, ARestartIsAllowedWhereItIsAskedFor) {
  watch(kHangs, OnHang::kRestart, in_read());
  run_until_finished();
  EXPECT_EQ(attempt->supervisor().outcome().end.kind, RunEnd::Kind::kHang);
  EXPECT_FALSE(attempt->supervisor().state().unwanted);
}

TEST_F(HangMonitorTest, ADumpLeavesTheRunAlone) {
  watch(kHangs, OnHang::kDump, in_read());
  run_until([this] { return looks == 1 && sink.text().find("read") != std::string::npos; });
  EXPECT_EQ(attempt->supervisor().state().phase, SupervisionState::Phase::kRunning);
  stop();
  run_until_finished();
}

TEST_F(HangMonitorTest, WithoutALookTheRunIsStoppedAllTheSame) {
  watch(kHangs, OnHang::kKill, std::nullopt);
  run_until_finished();
  EXPECT_THAT(sink.text(), HasSubstr("there is no debugger"));
  EXPECT_FALSE(std::filesystem::exists(temporary / "attempt_0/stacks.txt"));
  EXPECT_EQ(attempt->supervisor().outcome().end.kind, RunEnd::Kind::kHang);
}

TEST_F(HangMonitorTest, OutputIsProgress) {
  watch("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.02; done", OnHang::kKill, in_read());
  run_until_finished();
  EXPECT_EQ(looks, 0);
  EXPECT_EQ(attempt->supervisor().outcome().end.kind, RunEnd::Kind::kSucceeded);
}

TEST_F(HangMonitorTest, ASuspendedRunDoesNotHang) {
  watch(kHangs, OnHang::kKill, in_read());
  attempt->supervisor().handle(SignalArrived{SIGTSTP});
  const EventLoop::Timer later = loop.after(Duration(300), [this] { loop.stop(); });
  run_until([&later] { return !later.armed(); });
  EXPECT_EQ(looks, 0);
  attempt->supervisor().handle(SignalArrived{SIGCONT});
  stop();
  run_until_finished();
}

}  // namespace
}  // namespace lrun::launcher
