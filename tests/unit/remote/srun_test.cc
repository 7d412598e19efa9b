#include "remote/srun.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lrun::launcher {
namespace {

bool has(const std::vector<std::string>& command, const std::string& word) {
  return std::find(command.begin(), command.end(), word) != command.end();
}

TEST(SrunCommand, StartsOneLauncherOnEachNodeWhichGetsTheWholeNodeAndEveryInterrupt) {
  const std::vector<std::string> command = srun_command({3}, {"/bin/lrun", "--devices", "2", "prog"}, false);
  EXPECT_EQ(command.front(), "srun");
  for (const char* const word : {"--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--overlap", "--cpu-bind=none",
                                 "--kill-on-bad-exit=0", "--disable-status", "--input=none"}) {
    EXPECT_TRUE(has(command, word)) << word;
  }
  const std::vector<std::string> launcher(command.end() - 4, command.end());
  EXPECT_EQ(launcher, (std::vector<std::string>{"/bin/lrun", "--devices", "2", "prog"}));
}

TEST(SrunCommand, GivesInputToTheFirstAndAsksForGpusWhereItIsToldTo) {
  const std::vector<std::string> command = srun_command({2, "a100:4"}, {"lrun"}, true);
  EXPECT_TRUE(has(command, "--input=0"));
  EXPECT_TRUE(has(command, "--gpus-per-node=a100:4"));
  EXPECT_EQ(command.back(), "lrun");
}

TEST(SrunCommand, LetsTheStepOutliveItsNodesWhereTheRunDoes) {
  for (const bool outlives : {false, true}) {
    const std::vector<std::string> command = srun_command({2, "", outlives}, {"lrun"}, false);
    EXPECT_EQ(has(command, "--no-kill"), outlives);
    EXPECT_EQ(has(command, "--wait=0"), outlives);
    EXPECT_EQ(command.back(), "lrun");
  }
}

}  // namespace
}  // namespace lrun::launcher
