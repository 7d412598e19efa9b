#include <gtest/gtest.h>

#include <csignal>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

pid_t pid_of_rank(const LrunProcess& lrun, int rank) {
  for (const pid_t pid : lrun.workers()) {
    if (environment_of(pid).find("\nRANK=" + std::to_string(rank) + "\n") != std::string::npos) return pid;
  }
  return -1;
}

TEST(AllReduce, AWorkerKilledInTheMiddleIsNamedAndTheOthersEnd) {
  LrunProcess lrun({"--devices", "3", ALL_REDUCE_WORKER});
  for (const char* rank : {"[0] reducing", "[1] reducing", "[2] reducing"})
    ASSERT_TRUE(lrun.wait_for(rank)) << lrun.err();
  const pid_t victim = pid_of_rank(lrun, 1);
  ASSERT_GT(victim, 0);
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  EXPECT_EQ(lrun.wait().code, 137) << lrun.err();
  const std::string expected = "lrun: error: rank 1 (local rank 1, pid " + std::to_string(victim);
  EXPECT_NE(lrun.err().rfind(expected), std::string::npos) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
