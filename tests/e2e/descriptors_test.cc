// File descriptors: with as many as lrun says it needs everything works, and with one less it refuses.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "support/lrun_process.h"
#include "support/words.h"

namespace lrun::test {
namespace {

constexpr int kWorkers = 40;
constexpr int kOfLauncher = 48;

struct Output {
  std::string name;
  Words options;
  int of_worker;  ///< descriptors
};

void PrintTo(const Output& output, std::ostream* out) { *out << output.name; }

class Descriptors : public ::testing::TestWithParam<Output> {};

INSTANTIATE_TEST_SUITE_P(Output, Descriptors,
                         ::testing::Values(Output{"KeptAndShown", {}, 6},
                                           Output{"Shown", {"--log-dir", "/dev/null"}, 4},
                                           Output{"InFilesOfTheirOwn", {"-r", "3"}, 2},
                                           Output{"InOneFileOfTheirOwn", {"-r", "2", "-t", "1"}, 4},
                                           Output{"TheConsolesOwn", {"--log-dir", "/dev/null", "--output", "raw"}, 2},
                                           Output{"AsUnderTorchrun", {"--compat=torchrun"}, 2}),
                         [](const auto& instance) { return instance.param.name; });

LrunProcess::Options limited_to(int descriptors) {
  return {.environment = {{"OMP_NUM_THREADS", "1"}}, .before_exec = [descriptors] {
            const auto limit = static_cast<rlim_t>(descriptors);
            const struct rlimit both { limit, limit };
            ::setrlimit(RLIMIT_NOFILE, &both);
          }};
}

/// Each worker keeps a connection to the store open until all have theirs.
constexpr const char* kConnected =
    "echo said; echo complained >&2; exec 7<>/dev/tcp/127.0.0.1/$MASTER_PORT && printf '\\0\\xce\\xf7\\x85\\x3c' >&7 "
    "&& "
    "> $0/$RANK; until [ $(ls $0 | wc -l) = $WORLD_SIZE ]; do sleep 0.05; done";

/// Forty workers are more than the CPUs of most machines.
bool warns_of_nothing_but_crowded_cpus(const std::string& err) {
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, "lrun: warning: ") && !contains(line, "40 workers on ")) return false;
  }
  return true;
}

TEST_P(Descriptors, AreEnoughWhereLrunSaysSo) {
  const TemporaryFolder folder;
  const Words count{"-n", std::to_string(kWorkers)};
  const Words program{"--no-python", "bash", "-c", kConnected, folder.path()};
  const int needed = kWorkers * GetParam().of_worker + kOfLauncher;
  LrunProcess lrun(joined(joined(count, GetParam().options), program), limited_to(needed));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(warns_of_nothing_but_crowded_cpus(lrun.err())) << lrun.err();
}

TEST_P(Descriptors, AreToldToBeTooFewBeforeAnythingStarts) {
  const int needed = kWorkers * GetParam().of_worker + kOfLauncher;
  const Words words = joined({"-n", std::to_string(kWorkers)}, GetParam().options);
  LrunProcess lrun(joined(words, {"--no-python", "echo", "started"}), limited_to(needed - 1));
  EXPECT_EQ(lrun.wait().code, 125) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "40 workers need " + std::to_string(needed) +
                                       " file descriptors and the hard limit is " + std::to_string(needed - 1)))
      << lrun.err();
  EXPECT_FALSE(contains(lrun.out(), "started")) << lrun.out();
}

}  // namespace
}  // namespace lrun::test
