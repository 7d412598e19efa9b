#include "process/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "process/cpu_time.h"

namespace lrun {
namespace {

TEST(Progress, TheLauncherSeesTheStepsOfEachWorker) {
  const ProgressBoard board(3);
  ProgressReporter second(ProgressBoard::variable(board.fd(), 1).c_str());
  EXPECT_EQ(board.of(1), Progress{}) << "nothing was told yet";
  second.step();
  second.step();
  EXPECT_EQ(board.of(1).steps, 2U);
  EXPECT_GT(board.of(1).first_steady_ns, 0);
  EXPECT_GT(board.of(1).steady_ns, board.of(1).first_steady_ns);
  EXPECT_EQ(board.of(0), Progress{});
  EXPECT_EQ(board.of(2), Progress{});
}

TEST(Progress, TheLauncherSeesWhenTheLastCheckpointWasWrittenWhateverStepsFollow) {
  const ProgressBoard board(2);
  const std::string place = ProgressBoard::variable(board.fd(), 1);
  ProgressReporter steps(place.c_str());
  steps.step();
  ProgressReporter(place.c_str()).checkpoint();
  const std::int64_t first = board.of(1).checkpoint_steady_ns;
  EXPECT_GT(first, board.of(1).steady_ns);
  steps.step();
  EXPECT_EQ(board.of(1).checkpoint_steady_ns, first);
  steps.checkpoint();
  EXPECT_GT(board.of(1).checkpoint_steady_ns, first);
  EXPECT_EQ(board.of(1).steps, 2U);
  EXPECT_EQ(board.of(0), Progress{});
}

TEST(Progress, TheLauncherSeesInWhichCallAWorkerWaits) {
  const ProgressBoard board(70);  // more than a page
  const std::string place = ProgressBoard::variable(board.fd(), 69);
  const CallReporter reporter(place.c_str());
  ASSERT_TRUE(reporter);
  EXPECT_EQ(board.of(69).calls, 0U);
  EXPECT_EQ(board.of(69).calls_pid, ::getpid());
  ReportedCall first;
  {
    const CallReporter::Call call(reporter, ReportedOperation::kAllReduce);
    first = board.of(69).call;
    EXPECT_TRUE(first);
    EXPECT_EQ(first.operation(), "all_reduce");
    ProgressReporter(place.c_str()).step();
    EXPECT_EQ(board.of(69).call, first);
  }
  EXPECT_FALSE(board.of(69).call);
  const CallReporter::Call call(reporter, ReportedOperation::kAllReduce);
  EXPECT_NE(board.of(69).call, first) << "another one of the same kind";
  EXPECT_EQ(board.of(69).calls, 2U);
  EXPECT_EQ(board.of(69).steps, 1U);
  EXPECT_EQ(board.of(68), Progress{});
}

TEST(Progress, EveryOperationHasAName) {
  const ProgressBoard board(1);
  const CallReporter reporter(ProgressBoard::variable(board.fd(), 0).c_str());
  for (const auto& [operation, name] :
       {std::pair(ReportedOperation::kInitProcessGroup, "init_process_group"),
        std::pair(ReportedOperation::kAllToAll, "all_to_all"), std::pair(ReportedOperation::kBarrier, "barrier")}) {
    const CallReporter::Call call(reporter, operation);
    EXPECT_EQ(board.of(0).call.operation(), name);
  }
  EXPECT_EQ(ReportedCall{}.operation(), "");
  EXPECT_EQ(ReportedCall{0xFFFF}.operation(), "") << "any program can write there";
}

TEST(Progress, ACallThatEndsLeavesALaterOneOfAnotherThread) {
  const ProgressBoard board(1);
  const CallReporter reporter(ProgressBoard::variable(board.fd(), 0).c_str());
  std::optional<CallReporter::Call> first(std::in_place, reporter, ReportedOperation::kAllReduce);
  const CallReporter::Call second(reporter, ReportedOperation::kBarrier);
  first.reset();
  EXPECT_EQ(board.of(0).call.operation(), "barrier");
}

TEST(Progress, ANewProcessIsInNoCall) {
  const ProgressBoard board(1);
  const std::string place = ProgressBoard::variable(board.fd(), 0);
  const CallReporter reporter(place.c_str());
  const CallReporter::Call of_one_that_was_killed(reporter, ReportedOperation::kBarrier);
  const CallReporter next(place.c_str());
  EXPECT_FALSE(board.of(0).call);
}

TEST(Progress, ACallBehindTheEndOfTheMemoryIsNotReported) {
  const ProgressBoard board(1);
  const CallReporter reporter(ProgressBoard::variable(board.fd(), 1).c_str());
  EXPECT_FALSE(reporter);
  const CallReporter::Call call(reporter, ReportedOperation::kAllReduce);
  EXPECT_EQ(board.of(1), Progress{});
}

TEST(Progress, ADescriptorOfTheProgramsOwnIsLeftAlone) {
  char path[] = "/tmp/lrun-progress-test-XXXXXX";
  const Fd file(::mkstemp(path));
  ASSERT_TRUE(file);
  ::unlink(path);
  ProgressReporter teller(ProgressBoard::variable(file.get(), 0).c_str());
  teller.step();
  teller.checkpoint();
  EXPECT_FALSE(CallReporter(ProgressBoard::variable(file.get(), 0).c_str()));
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), 0) << "it wrote into a file that is not the launcher's";
}

TEST(Progress, WhatIsNoPlaceIsIgnored) {
  for (const char* const variable : {"", "3", "x:0", "3:x", "3:-64", "3:65", "-1:0", "999999:0"}) {
    ProgressReporter teller(variable);
    teller.step();
    EXPECT_FALSE(CallReporter(variable)) << variable;
  }
  ProgressReporter none(nullptr);
  none.step();
  none.checkpoint();
  EXPECT_EQ(ProgressBoard().of(0), Progress{});
}

TEST(CpuTime, IsThatOfTheWholeSession) {
  const pid_t session = ::getsid(0);
  const std::uint64_t before = cpu_ticks_of_sessions({session});
  volatile std::uint64_t work = 0;
  while (cpu_ticks_of_sessions({session}) <= before) work = work + 1;  // the looks alone use time
  EXPECT_EQ(cpu_ticks_of_sessions({}), 0U);
}

}  // namespace
}  // namespace lrun
