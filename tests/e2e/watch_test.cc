// --watch: rules on the lines that workers print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Prints a loss that is fine, then `line`, and goes on for long.
std::string prints(const std::string& line) { return "echo 'step 1 loss=2.5'; " + line + "; exec sleep 1000"; }

TEST(Watch, StopsTheRunAtALineOfOneRankAndQuotesIt) {
  LrunProcess lrun({"-n", "2", "--output", "quiet", "--watch", "loss=([^ ]+)", "sh", "-c",
                    prints("[ $RANK = 1 ] && echo 'step 2 loss=nan'")});
  EXPECT_EQ(lrun.wait().code, 1) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("lrun: error: the run was stopped: rank 1 printed nan: 'step 2 loss=nan' "
                                    "(--watch 'loss=([^ ]+)')\n"));
}

TEST(Watch, StopsTheRanksOfAllNodes) {
  Job job({"--num-nodes", "2", "-n", "1", "--watch", "loss=([^ ]+)"});
  const Words program{"sh", "-c", prints("[ $RANK = 1 ] && echo 'step 2 loss=inf'")};
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  for (LrunProcess* node : {&first, &second}) {
    EXPECT_EQ(node->wait().code, 1) << node->err();
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
  EXPECT_EQ(lrun.wait().code, 1) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("rank 0 printed nothing like 'step ([0-9]+)' for 300ms"));
}

TEST(Watch, SeesStreamsThatAreWrittenToFilesOnlyAndThoseOfARawConsole) {
  for (const Words& options : {Words{"--redirects", "3"}, Words{"--output", "raw", "--log-dir", "/dev/null"}}) {
    Words words{"-n", "1", "--watch", "CUDA error"};
    words.insert(words.end(), options.begin(), options.end());
    for (const char* const word : {"sh", "-c"}) words.emplace_back(word);
    words.push_back(prints("echo 'a CUDA error' >&2"));
    LrunProcess lrun(words);
    EXPECT_EQ(lrun.wait().code, 1) << lrun.err();
    EXPECT_THAT(lrun.err(), HasSubstr("rank 0 printed 'a CUDA error'"));
  }
}

TEST(Watch, WarnsOfARuleThatNoLineMatched) {
  LrunProcess lrun({"-n", "1", "--watch", "lost=([^ ]+)", "--watch", "CUDA error", "echo", "loss=2"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_THAT(lrun.err(), HasSubstr("lrun: warning: no line matched '--watch lost=([^ ]+)'"));
  EXPECT_THAT(lrun.err(), Not(HasSubstr("CUDA error")));
}

}  // namespace
}  // namespace lrun::test
