// What old kernels and seccomp filters leave: kill() and waitid().
#include <gtest/gtest.h>

#include <csignal>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

LrunProcess::Options without_pidfds() { return {.environment = {{"LRUN_NO_PIDFD", "1"}}}; }

TEST(NoPidfd, ARunSucceeds) {
  LrunProcess lrun({"-n", "8", "sh", "-c", "echo done"}, without_pidfds());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.out().find("[7] done"), std::string::npos) << lrun.out();
}

TEST(NoPidfd, AFailureStopsTheOthers) {
  LrunProcess lrun({"-n", "4", "sh", "-c", "[ $RANK = 2 ] && exit 9; exec sleep 1000"}, without_pidfds());
  EXPECT_EQ(lrun.wait().code, 9) << lrun.err();
  EXPECT_NE(lrun.err().find("rank 2 "), std::string::npos) << lrun.err();
}

TEST(NoPidfd, ASignalStopsTheRun) {
  LrunProcess lrun({"-n", "4", "sh", "-c", "echo ready; exec sleep 1000"}, without_pidfds());
  for (const char* const ready : {"[0] ready", "[1] ready", "[2] ready", "[3] ready"})
    ASSERT_TRUE(lrun.wait_for(ready));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
}

TEST(NoPidfd, WhatHoldsOutIsKilled) {
  LrunProcess lrun(
      {"-n", "2", "--grace", "200ms", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"},
      without_pidfds());
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
}

TEST(NoPidfd, AFailedRunIsStartedAgain) {
  LrunProcess lrun({"-n", "4", "--max-restarts", "1", "sh", "-c",
                    "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = 3 ] && exit 9; exec sleep 1000"},
                   without_pidfds());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
