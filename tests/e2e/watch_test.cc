// --watch: rules on the lines that workers print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "support/beside.h"
#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Prints a loss that is fine, then `line`, and goes on for long.
std::string prints(const std::string& line) { return "echo 'step 1 loss=2.5'; " + line + "; exec sleep 1000"; }

TEST(Watch, StopsTheRunAtALineOfOneRankAndQuotesIt) {
  LrunProcess lrun({"-n", "2", "--output", "quiet", "--watch", "loss=([^ ]+)", "sh", "-c",
                    prints("[ $RANK = 1 ] && echo 'step 2 loss=nan'")});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("lrun: error: the run was stopped: rank 1 printed nan: 'step 2 loss=nan' "
                                    "(--watch 'loss=([^ ]+)')\n"));
}

TEST(Watch, SeesTheLastLineOfAProgramThatEndsWell) {
  LrunProcess lrun({"-n", "1", "--watch", "loss=([^ ]+)", "printf", "loss=nan"});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("rank 0 printed nan: 'loss=nan'"));
}

TEST(Watch, LeavesTheErrorOfARankThatFailsForTheSameReason) {
  LrunProcess lrun({"-n", "2", "--max-restarts", "3", "--watch", "CUDA error", "sh", "-c",
                    "[ $RANK = 0 ] && exec sleep 1000; echo 'RuntimeError: CUDA error' >&2; exit 7"});
  EXPECT_EQ(lrun.wait().code, 7) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("lrun: error: rank 1 exited with code 7\n"));
  EXPECT_THAT(lrun.err(), Not(HasSubstr("restart 1 of 3"))) << "the rule says that it stops";
}

TEST(Watch, HearsNoSilenceOfARankThatHasEndedOrThatAnotherAttemptHad) {
  LrunProcess lrun(
      {"-n", "2", "--max-restarts", "1", "--restart-backoff", "0s", "--watch", "step => silent 300ms", "sh", "-c",
       "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && { sleep 1; exit 0; }; [ $RANK = 0 ] && { echo step; exit 0; }; "
       "sleep 0.6; echo step; exit 3"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("restart 1 of 1"));
}

TEST(Watch, IsToldToPrograms) {
  LrunProcess lrun({"-n", "2", "--watch", "loss=([^ ]+)", "--watch", "step => warn", "sh", "-c",
                    prints("[ $RANK = 1 ] && echo 'step 2 loss=nan'")});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
  Beside explain(lrun, {"explain", "--json"});
  EXPECT_EQ(explain.wait().code, 0) << explain.err();
  EXPECT_THAT(explain.out(), AllOf(HasSubstr("\"reason\":\"watched\""), HasSubstr("\"rank\":1")));
  Beside report(lrun, {"report"});
  EXPECT_EQ(report.wait().code, 0) << report.err();
  EXPECT_THAT(report.out(), HasSubstr("rank 0 printed 'step 1 loss=2.5' (--watch 'step => warn')"));
}

TEST(Watch, StopsTheRanksOfAllNodes) {
  Job job({"--num-nodes", "2", "-n", "1", "--watch", "loss=([^ ]+)"});
  const Words program{"sh", "-c", prints("[ $RANK = 1 ] && echo 'step 2 loss=inf'")};
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  for (LrunProcess* node : {&first, &second}) {
    EXPECT_EQ(node->wait().code, 124) << node->err();
    EXPECT_THAT(node->err(), HasSubstr("rank 1 printed inf: 'step 2 loss=inf'"));
  }
}

TEST(Watch, WarnsOrRestartsWhereARuleSaysSo) {
  LrunProcess lrun({"-n", "1", "--max-restarts", "1", "--watch", "loss=([^ ]+) => > 2 warn", "--watch",
                    "loss=([^ ]+) => nan restart", "sh", "-c",
                    "echo loss=2.5; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; echo loss=nan; exec sleep 1000"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("lrun: warning: rank 0 printed 2.5, above 2: 'loss=2.5'"));
  EXPECT_THAT(lrun.err(), HasSubstr("lrun: warning: restart 1 of 1"));
}

TEST(Watch, SeesSilenceOnceALineHasCome) {
  LrunProcess lrun({"-n", "1", "--watch", "step ([0-9]+) => silent 300ms", "sh", "-c", prints(":")});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("rank 0 printed nothing like 'step ([0-9]+)' for 300ms"));
}

TEST(Watch, SeesStreamsThatAreWrittenToFilesOnlyAndThoseOfARawConsole) {
  for (const Words& options : {Words{"--redirects", "3"}, Words{"--output", "raw", "--log-dir", "/dev/null"}}) {
    Words words{"-n", "1", "--watch", "CUDA error"};
    words.insert(words.end(), options.begin(), options.end());
    for (const char* const word : {"sh", "-c"}) words.emplace_back(word);
    words.push_back(prints("echo 'a CUDA error' >&2"));
    LrunProcess lrun(words);
    EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
    EXPECT_THAT(lrun.err(), HasSubstr("rank 0 printed 'a CUDA error'"));
  }
}

TEST(Watch, WarnsOfARuleThatNoLineMatched) {
  LrunProcess lrun({"-n", "1", "--watch", "lost=([^ ]+)", "--watch", "CUDA error", "echo", "loss=2"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_THAT(lrun.err(), HasSubstr("lrun: warning: no line matched --watch 'lost=([^ ]+)'"));
  EXPECT_THAT(lrun.err(), Not(HasSubstr("CUDA error")));
}

}  // namespace
}  // namespace lrun::test
