#include "runtime/launch/fork_safety.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lrun::detail {
namespace {

TEST(WhyNotFork, IsNothingForAProcessThatDidNothing) {
  EXPECT_EQ(why_not_fork({.open_files = {"/dev/null", "pipe:[1]", "/dev/nvidiactl"}}), "");
}

TEST(WhyNotFork, IsAGpuContext) {
  for (const std::string file : {"/dev/nvidia-uvm", "/dev/kfd"}) {
    EXPECT_EQ(why_not_fork({.open_files = {"/dev/null", file}}),
              "a GPU was used in this process before, and a context of CUDA or ROCm does not work in a fork");
  }
}

TEST(WhyNotFork, IsOtherThreadsOrBackward) {
  EXPECT_EQ(why_not_fork({.new_threads = 3}),
            "3 other threads run in this process, and a fork has none of them: the thread pool of LibTorch, for "
            "example, would hang there");
  EXPECT_EQ(why_not_fork({.backward_works = false}),
            "autograd does not work in its forks: backward() was called in this process before");
}

TEST(ForkFacts, HoldWhatIsOpenHere) {
  const auto files = fork_facts().open_files;
  EXPECT_NE(std::find_if(files.begin(), files.end(), [](const std::string& file) { return !file.empty(); }),
            files.end());
}

}  // namespace
}  // namespace lrun::detail
