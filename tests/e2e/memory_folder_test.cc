// LRUN_MEMORY_DIR: what workers save in memory outlives them, and goes with the run, however that ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

/// A worker that saves a state, says so and goes on.
constexpr const char* kSaves = "echo 7 > $LRUN_MEMORY_DIR/state; echo saved in $LRUN_MEMORY_DIR.; exec sleep 1000";

class MemoryFolderOfRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "there is no /dev/shm";
  }
  /// The folder around the one that a worker of kSaves has named.
  static fs::path folder_of(LrunProcess& lrun) {
    EXPECT_TRUE(lrun.wait_for("saved in ") && lrun.wait_for(".\n")) << lrun.err();
    const std::size_t begin = lrun.out().find("/dev/shm/");
    if (begin == std::string::npos) return {};
    return fs::path(lrun.out().substr(begin, lrun.out().find(".\n", begin) - begin)).parent_path();
  }
};

TEST_F(MemoryFolderOfRun, HasWhatKilledWorkersSavedAndGoesWithTheRun) {
  LrunProcess lrun({"-n", "2", "--max-restarts", "1", "--restart-backoff", "0s", "sh", "-c",
                    "cd $LRUN_MEMORY_DIR; [ -e state$RANK ] && { cat state$RANK; pwd; exit; }; "
                    "echo state of rank $RANK > new$RANK; mv new$RANK state$RANK; "
                    "until [ -e state0 -a -e state1 ]; do sleep 0.01; done; kill -9 $$"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_THAT(lrun.out(), HasSubstr("[0] state of rank 0\n"));
  EXPECT_THAT(lrun.out(), HasSubstr("[1] state of rank 1\n"));
  const std::size_t begin = lrun.out().find("/dev/shm/");
  ASSERT_NE(begin, std::string::npos) << lrun.out();
  const fs::path workers = lrun.out().substr(begin, lrun.out().find('\n', begin) - begin);
  EXPECT_FALSE(fs::exists(workers.parent_path())) << workers;
}

TEST_F(MemoryFolderOfRun, GoesAfterKillOfTheGuard) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kSaves});
  const fs::path folder = folder_of(lrun);
  EXPECT_TRUE(fs::exists(folder / "workers" / "state"));
  lrun.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return !fs::exists(folder); }));
}

TEST_F(MemoryFolderOfRun, GoesAfterKillOfTheLauncher) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kSaves});
  const fs::path folder = folder_of(lrun);
  ASSERT_EQ(::kill(lrun.launcher_pid(), SIGKILL), 0);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(MemoryFolderOfRun, GoesAfterKillOfBoth) {
  if (std::getenv("LRUN_NO_PIDFD") != nullptr) GTEST_SKIP() << "without pidfds there is no waker";
  fs::path folder;
  ASSERT_TRUE(eventually([&] {
    LrunProcess lrun({"-n", "1", "sh", "-c", kSaves});
    folder = folder_of(lrun);
    return kill_both(lrun);
  }));
  EXPECT_TRUE(eventually([&] { return !fs::exists(folder); }));
}

TEST_F(MemoryFolderOfRun, GoesWithALaterRunWhereAllWereKilled) {
  fs::path folder;
  ASSERT_TRUE(eventually([&] {  // until one of them had no time to clean up
    LrunProcess lrun({"-n", "1", "sh", "-c", kSaves});
    folder = folder_of(lrun);
    const bool has_waker = eventually([&] { return lrun.waker_pid() != kNoProcess; }, 5s);
    if (has_waker) ::kill(lrun.waker_pid(), SIGKILL);
    return kill_both(lrun) && fs::exists(folder);
  }));
  EXPECT_TRUE(eventually([&] {
    LrunProcess later({"-n", "1", "sleep", "0.1"});
    EXPECT_EQ(later.wait().code, 0);
    return !fs::exists(folder);
  }));
}

TEST_F(MemoryFolderOfRun, IsThereUnlessItIsNotWanted) {
  const std::vector<std::vector<std::string>> without{{"--memory-dir", "0", "-n", "1"},
                                                      {"--compat=torchrun", "--nproc-per-node", "1", "--no-python"}};
  for (std::vector<std::string> arguments : without) {
    arguments.emplace_back("env");
    LrunProcess lrun(arguments, {.environment = {{"LRUN_MEMORY_DIR", "/of/an/outer/run"}}});
    EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
    EXPECT_THAT(lrun.out(), Not(HasSubstr("LRUN_MEMORY_DIR=")));
  }
  LrunProcess wanted({"--compat=torchrun", "--memory-dir", "1G", "--nproc-per-node", "1", "--no-python", "env"});
  EXPECT_EQ(wanted.wait().code, 0) << wanted.err();
  EXPECT_THAT(wanted.out(), HasSubstr("LRUN_MEMORY_DIR=/dev/shm/lrun-memory-"));
}

TEST_F(MemoryFolderOfRun, IsKnownToModulesOfAForkServer) {
  if (std::getenv("LRUN_NO_PIDFD") != nullptr) GTEST_SKIP() << "a fork server needs pidfds";
  TemporaryFolder folder;
  (void)folder.script("reads.py", "import os\nseen = os.environ['LRUN_MEMORY_DIR']\n", false);
  const std::string train = folder.script(
      "train.py", "import os, reads\nprint('same', reads.seen == os.environ['LRUN_MEMORY_DIR'], reads.seen)\n", false);
  LrunProcess lrun({"-n", "1", "--preload", "reads", train});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_THAT(lrun.out(), HasSubstr("same True /dev/shm/lrun-memory-"));
  EXPECT_EQ(lrun.err(), "");
}

TEST_F(MemoryFolderOfRun, IsAnotherForAnLrunBelowAWorker) {
  const std::string inner = std::string(LRUN_PROGRAM) + " -n 1 sh -c 'echo inner $LRUN_MEMORY_DIR'";
  LrunProcess lrun({"-n", "1", "sh", "-c", "echo outer $LRUN_MEMORY_DIR; " + inner + "; ls -d $LRUN_MEMORY_DIR"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  const auto named = [&](const std::string& word) {
    const std::size_t begin = lrun.out().find(word + " /dev/shm/") + word.size() + 1;
    return lrun.out().substr(begin, lrun.out().find('\n', begin) - begin);
  };
  EXPECT_NE(named("inner"), named("outer")) << lrun.out();
  EXPECT_FALSE(fs::exists(named("inner")) || fs::exists(named("outer")));
}

}  // namespace
}  // namespace lrun::test
