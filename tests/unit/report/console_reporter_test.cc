#include "report/console_reporter.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lrun::launcher {
namespace {

FailureRecord ended_with_3(int rank) {
  FailureRecord record;
  record.rank = rank;
  record.value = 3;
  record.cause = Cause::kOwnError;
  return record;
}

class ConsoleReporterTest : public ::testing::Test {
 protected:
  std::optional<std::uint64_t> lines = 100;
  bool prints = true;
  std::string said;
  EventLog events;
  ConsoleReporter reporter{{.grace = Duration(30'000)},
                           events,
                           [this](const std::string& text) {
                             said += text;
                             return prints;
                           },
                           [this] { return lines; }};
};

TEST_F(ConsoleReporterTest, ACauseThatWasToldIsOnTheScreenUntilADozenLinesFollow) {
  const Verdict verdict = judge({RunEnd::Kind::kWorkerFailed}, {ended_with_3(1)});
  EXPECT_FALSE(reporter.has_told(verdict));
  reporter.stopping({RunEnd::Kind::kWorkerFailed}, &*verdict.culprit, {2});
  EXPECT_NE(said.find("rank 1 exited with code 3"), std::string::npos) << said;
  EXPECT_TRUE(reporter.has_told(verdict));
  EXPECT_FALSE(reporter.has_told(judge({RunEnd::Kind::kWorkerFailed}, {ended_with_3(2)})))
      << "another rank is to blame";
  *lines += ConsoleReporter::kLinesOnScreen;
  EXPECT_EQ(reporter.lines_since_stop(), ConsoleReporter::kLinesOnScreen);
  EXPECT_TRUE(reporter.is_on_screen(100));
  ++*lines;
  EXPECT_FALSE(reporter.is_on_screen(100));
  lines.reset();
  EXPECT_GT(reporter.lines_since_stop(), ConsoleReporter::kLinesOnScreen) << "the console has not taken all of them";
}

TEST_F(ConsoleReporterTest, WhatWasToldOfWorkersSaysNothingOfThoseThatAreStartedAgain) {
  const Verdict verdict = judge({RunEnd::Kind::kWorkerFailed}, {ended_with_3(1)});
  reporter.stopping({RunEnd::Kind::kWorkerFailed}, &*verdict.culprit, {2});
  ASSERT_TRUE(reporter.has_told(verdict));
  reporter.begin_attempt();
  EXPECT_FALSE(reporter.has_told(verdict)) << "the same attempt begins again where nodes come or go";
}

TEST_F(ConsoleReporterTest, ASignalThatWasToldNeedsNoVerdictAndATimeLimitDoes) {
  const RunEnd interrupted{.kind = RunEnd::Kind::kInterrupted, .signal_number = SIGINT};
  reporter.stopping(interrupted, nullptr, {2});
  EXPECT_TRUE(reporter.has_told(judge(interrupted, {})));
  const RunEnd over{.kind = RunEnd::Kind::kTimedOut, .limit_ms = 1000};
  EXPECT_FALSE(reporter.has_told(judge(over, {}))) << "it is a failure, and the note about it was none";
}

TEST_F(ConsoleReporterTest, ACauseThatAnotherLauncherPrintsIsNotTold) {
  prints = false;
  const Verdict verdict = judge({RunEnd::Kind::kWorkerFailed}, {ended_with_3(1)});
  reporter.stopping({RunEnd::Kind::kWorkerFailed}, &*verdict.culprit, {2});
  EXPECT_FALSE(reporter.has_told(verdict));
  *lines += 3;
  EXPECT_EQ(reporter.lines_since_stop(), 3) << "they stand below it all the same";
}

TEST_F(ConsoleReporterTest, WithNothingLeftToStopItSaysNothing) {
  const Verdict verdict = judge({RunEnd::Kind::kWorkerFailed}, {ended_with_3(0)});
  reporter.stopping({RunEnd::Kind::kWorkerFailed}, &*verdict.culprit, {0});
  EXPECT_EQ(said, "") << "the verdict follows at once";
  EXPECT_FALSE(reporter.has_told(verdict));
}

}  // namespace
}  // namespace lrun::launcher
