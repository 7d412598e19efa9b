#include "runtime/launch/launch_end.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lrun::detail {
namespace {

FailureRecord ended(int rank, int code, int stop_signal = 0) {
  FailureRecord record;
  record.node = "host";
  record.rank = rank;
  record.local_rank = rank;
  record.pid = 100 + rank;
  record.steady_ns = rank;
  record.value = code;
  record.stop_signal = stop_signal;
  record.cause = code == 0 ? Cause::kSucceeded : stop_signal != 0 ? Cause::kStoppedByLrun : Cause::kOwnError;
  return record;
}

LaunchEnd failed_end() {
  LaunchEnd end;
  end.end.kind = RunEnd::Kind::kWorkerFailed;
  end.records = {ended(0, 143, SIGTERM), ended(1, 3), ended(2, 137, SIGKILL)};
  end.records[1].error = "std::runtime_error: no data";
  end.records[1].evidence = {"one", "std::runtime_error: no data", "two"};
  return end;
}

TEST(LaunchEnd, IsTheSameAfterItsText) {
  LaunchEnd end = failed_end();
  EXPECT_EQ(LaunchEnd::parse(end.text()), end);
  end.unfinished = LaunchEnd::Unfinished{2, true};
  end.end = {.kind = RunEnd::Kind::kTimedOut, .limit_ms = 1500};
  EXPECT_EQ(LaunchEnd::parse(end.text()), end);
}

TEST(LaunchEnd, IsNothingWhenItsTextIsCutOff) {
  const std::string text = failed_end().text();
  for (std::size_t size = 0; size + 1 < text.size(); size += 7) {
    EXPECT_EQ(LaunchEnd::parse(text.substr(0, size)), std::nullopt) << size;
  }
}

TEST(FailureOf, IsTheVerdictAboutTheRankToBlame) {
  const WorkersFailed failure = failure_of(failed_end());
  EXPECT_STREQ(failure.what(),
               "rank 1 (pid 101 on host) exited with code 3: std::runtime_error: no data; rank 0 was stopped; rank 2 "
               "had to be killed\n  one\n  two");
  EXPECT_EQ(failure.rank(), 1);
  EXPECT_EQ(failure.exit_code(), 3);
}

TEST(FailureOf, IsTheRankThatEndedWhileAnotherWaitedForIt) {
  LaunchEnd end;
  end.end.kind = RunEnd::Kind::kWorkerFailed;
  end.records = {ended(1, 0), ended(2, 1)};
  end.records[1].cause = Cause::kPeerLost;
  end.records[1].error = "lrun::PeerLost: rank 1 (pid 101) left the group before all_reduce #5";
  end.records[1].evidence = {end.records[1].error};
  const WorkersFailed failure = failure_of(end);
  EXPECT_STREQ(failure.what(),
               "rank 1 (pid 101 on host) exited with code 0: rank 2 waited for it in all_reduce: did it run fewer "
               "steps?; rank 2 failed later: lrun::PeerLost: rank 1 (pid 101) left the group before all_reduce #5");
  EXPECT_EQ(failure.rank(), 1);
  EXPECT_EQ(failure.exit_code(), 1);
  end.unfinished = LaunchEnd::Unfinished{1, true};
  EXPECT_STREQ(failure_of(end).what(),
               "rank 1 (pid 101 on host) ended with code 0 before the function that launch() runs had returned");
}

TEST(FailureOf, BlamesNobodyForATimeASignalOrTheSupervisor) {
  LaunchEnd end;
  end.end = {.kind = RunEnd::Kind::kTimedOut, .limit_ms = 2000};
  EXPECT_STREQ(failure_of(end).what(), "the ranks did not end within 2 s");
  EXPECT_EQ(failure_of(end).exit_code(), 124);
  EXPECT_EQ(failure_of(end).rank(), -1);
  end.end = {.kind = RunEnd::Kind::kInterrupted, .signal_number = SIGINT};
  EXPECT_STREQ(failure_of(end).what(), "the launch was interrupted by SIGINT");
  end.end = {.kind = RunEnd::Kind::kLauncherFailed};
  EXPECT_STREQ(failure_of(end).what(), "the process that supervised the ranks was killed, and they with it");
}

TEST(FailureOf, NamesARankThatCouldNotBeStarted) {
  LaunchEnd end;
  end.end.kind = RunEnd::Kind::kStartFailed;
  end.records = {ended(0, ENOENT)};
  end.records[0].ending = FailureRecord::Ending::kExecFailed;
  EXPECT_STREQ(failure_of(end).what(), "rank 0 (pid 100 on host) could not be executed: No such file or directory");
}

TEST(FailureOf, NamesARankThatNeverReachedTheCall) {
  LaunchEnd end;
  end.unfinished = LaunchEnd::Unfinished{1, false};
  EXPECT_FALSE(end.success());
  EXPECT_STREQ(failure_of(end).what(),
               "rank 1 ended with code 0 before it came to this call of launch(): a rank of 'ddp_spawn' executes the "
               "program from its beginning, and has to come to the same calls");
  EXPECT_EQ(failure_of(end).exit_code(), 1) << "a program that ends with it must not seem to have succeeded";
}

TEST(FailureOf, NamesTheProcessThatLeftTooEarly) {
  LaunchEnd end;
  end.unfinished = LaunchEnd::Unfinished{1, true};
  end.records = {ended(0, 143, SIGTERM), ended(1, 0)};
  EXPECT_STREQ(failure_of(end).what(),
               "rank 1 (pid 101 on host) ended with code 0 before the function that launch() runs had returned");
  EXPECT_EQ(failure_of(end).rank(), 1);
  EXPECT_EQ(failure_of(end).exit_code(), 1);
}

}  // namespace
}  // namespace lrun::detail
