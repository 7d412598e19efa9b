#include "remote/srun_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

std::optional<TaskEnd> failed_task_in(const std::string& text) {
  SrunLines lines;
  const std::string passed = lines.pass_on(text);
  EXPECT_EQ(passed + lines.rest(), text);
  return lines.failed_task();
}

TEST(SrunLines, TellWhichTaskFailed) {
  EXPECT_EQ(failed_task_in("srun: error: h2: task 1: Exited with exit code 2\n"),
            (TaskEnd{"h2", "Exited with exit code 2"}));
  EXPECT_EQ(failed_task_in("srun: error: h[2-3]: tasks 1-2: Segmentation fault (core dumped)\n"),
            (TaskEnd{"h[2-3]", "Segmentation fault (core dumped)"}));
}

TEST(SrunLines, AreReadAmongOthersHoweverTheyAreCut) {
  const std::string begin = "slurmstepd-h2: error: execve(): lrun: No such file or directory\n";
  const std::string end = "srun: error: h2: task 1: Killed\n\nsrun: error: h3: task 2: Terminated\nsr";
  const std::string text = begin + "srun: cluster configuration lacks support for cpu binding\n" + end;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    SrunLines lines;
    std::string passed = lines.pass_on(std::string_view(text).substr(0, cut));
    passed += lines.pass_on(std::string_view(text).substr(cut));
    EXPECT_EQ(passed + lines.rest(), begin + end) << cut;
    EXPECT_EQ(lines.failed_task(), (TaskEnd{"h2", "Killed"})) << cut;
  }
}

TEST(SrunLines, HoldBackNothingOfOthers) {
  SrunLines lines;
  EXPECT_EQ(lines.pass_on("progress 10%"), "progress 10%");
  EXPECT_EQ(lines.pass_on("srun: "), "srun: ") << "not at the beginning of the line";
  EXPECT_EQ(lines.pass_on("\nsrun:"), "\n");
  EXPECT_EQ(lines.pass_on("x"), "srun:x");
  EXPECT_EQ(lines.pass_on("\nsrun: " + std::string(5000, 'x')), "\nsrun: " + std::string(5000, 'x')) << "too long";
}

TEST(SrunLines, OfAnotherKindAreNoFailedTask) {
  for (const char* const line :
       {"srun: h2: task 1: Completed\n", "srun: error: Task launch for StepId=12.0 failed on node h2: task 1: x\n",
        "srun: error: h2: task 1\n", "srun: error: h2: task 1: \n", "srun: error: : task 1: Killed\n",
        " srun: error: h2: task 1: Killed\n", "srun: error: h2: task 1: Killed"}) {
    EXPECT_EQ(failed_task_in(line), std::nullopt) << line;
  }
}

}  // namespace
}  // namespace lrun::launcher
