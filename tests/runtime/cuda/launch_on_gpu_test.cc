// Ranks that a program starts itself, on one GPU: tests/runtime/README.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "runtime/cuda/gpus.h"
#include "runtime/cuda/launching_program.h"
#include "runtime/support/oracle.h"

namespace lrun::detail::testing {
namespace {

using ::testing::StartsWith;

/// The end and the output of launching_program.h's program.
test::Shell run_program(const std::string& method, const std::string& backend) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  return test::run_shell("timeout -k 5 100 '" + self + "' " + kLaunchingProgram + " " + method + " " + backend +
                         " 2>&1");
}

void expect_equality(const std::string& method, const std::string& backend) {
  const test::Shell program = run_program(method, backend);
  EXPECT_EQ(program.status, 0) << method << " over " << backend << ": " << program.output;
  std::istringstream words(program.output);
  std::map<std::string, double> differences;
  std::string name;
  for (double difference = 0; words >> name >> difference;) differences[name] = difference;
  EXPECT_EQ(differences.size(), 3U) << method << " over " << backend << ": " << program.output;
  for (const auto& [net, difference] : differences) EXPECT_LE(difference, 1e-6) << method << backend << ": " << net;
}

TEST(LaunchOnOneGpu, EqualsOneProcessInSpawnedRanks) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  expect_equality("ddp_spawn", "gloo");
  expect_equality("ddp_spawn", "shm");
}

TEST(LaunchOnOneGpu, EqualsOneProcessInForkedRanks) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  expect_equality("ddp_fork", "shm");
}

TEST(LaunchOnOneGpu, RefusesToForkAfterCuda) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  const test::Shell program = run_program("ddp_fork", "after-cuda");
  EXPECT_EQ(program.status, 0) << program.output;
  EXPECT_THAT(program.output, ::testing::HasSubstr("Unsupported: "));
  EXPECT_THAT(program.output,
              ::testing::HasSubstr(
                  "a GPU was used in this process before, and a context of CUDA or ROCm does not work in a fork"));
}

}  // namespace
}  // namespace lrun::detail::testing
