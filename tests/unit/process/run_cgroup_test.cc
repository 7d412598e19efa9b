#include "process/run_cgroup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

#include "base/small_file.h"
#include "process/spawn.h"
#include "support/temporary_folder.h"

namespace lrun {
namespace {

namespace fs = std::filesystem;

/// A folder that stands for '/', with a cgroup of version 2 for this process. No file of the kernel's appears in what
/// is made below it.
class FakeRoot {
 public:
  explicit FakeRoot(const fs::path& mount_point = "sys/fs/cgroup", const std::string& path = "/user/session")
      : own_(folder_ / mount_point / fs::path(path).relative_path()) {
    fs::create_directories(own_);
    fs::create_directories(folder_ / "proc/self");
    std::ofstream(folder_ / "proc/self/cgroup") << "9:memory:/job\n0::" << path << "\n";
    std::ofstream(own_ / "cgroup.subtree_control") << "\n";
  }

  [[nodiscard]] const fs::path& root() const { return folder_.path(); }
  [[nodiscard]] const fs::path& own() const { return own_; }

 private:
  test::TemporaryFolder folder_;
  fs::path own_;
};

TEST(RunCgroup, IsNotMadeWhereTheKernelCannotKillIt) {
  for (const char* const mount_point : {"sys/fs/cgroup", "sys/fs/cgroup/unified"}) {
    const FakeRoot fake(mount_point);
    EXPECT_FALSE(RunCgroup::make("run", fake.root()));
    EXPECT_FALSE(fs::exists(fake.own() / "lrun-run")) << "it must not be left behind";
  }
}

TEST(RunCgroup, IsNotMadeInVersionOne) {
  const FakeRoot fake;
  fs::remove(fake.own() / "cgroup.subtree_control");
  EXPECT_FALSE(RunCgroup::make("run", fake.root()));
}

TEST(RunCgroup, IsNotMadeOutsideOfTheContainer) {
  const FakeRoot fake("sys/fs/cgroup", "/../other");
  EXPECT_FALSE(RunCgroup::make("run", fake.root()));
}

TEST(RunCgroup, ThatIsEmptyDoesNothing) {
  const RunCgroup none = RunCgroup::make("run", "/nonexistent");
  EXPECT_FALSE(none);
  EXPECT_EQ(none.fd(), -1);
  EXPECT_TRUE(none.folder().empty());
  none.kill();
  none.remove();
  none.remove_abandoned();
  EXPECT_FALSE(none.inner("attempt-1"));
}

/// Made in the real cgroup of this process, or a reason to skip.
class RealRunCgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cgroup_) GTEST_SKIP() << "this process may not make a cgroup of version 2, or Linux is before 5.14";
  }
  void TearDown() override { cgroup_.remove(); }

  /// A shell in the cgroup.
  static SpawnResult start(const RunCgroup& cgroup, const char* script) {
    char* const argv[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(script), nullptr};
    return spawn({.path = "/bin/sh", .argv = argv, .envp = environ, .cgroup = cgroup.fd()},
                 SpawnDefaults::of_this_process());
  }
  static std::string members(const RunCgroup& cgroup) {
    return read_small_file(cgroup.folder() / "cgroup.procs", 4096).value_or("gone");
  }

  RunCgroup cgroup_ = RunCgroup::make("unit-test-" + std::to_string(::getpid()));
};

TEST_F(RealRunCgroup, HoldsWhatIsSpawnedInIt) {
  SpawnResult child = start(cgroup_, "exec sleep 1000");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(members(cgroup_), std::to_string(child.child->pid()) + "\n");
  cgroup_.kill();
  ASSERT_TRUE(child.child->wait_until_ended(Duration(30'000)));
  EXPECT_EQ(child.child->try_wait(), (ExitStatus{ExitStatus::Kind::kSignaled, SIGKILL}));
}

TEST_F(RealRunCgroup, TellsThatAProgramInItCannotBeExecuted) {
  char* const argv[] = {const_cast<char*>("x"), nullptr};
  const SpawnResult child = spawn({.path = "/nonexistent/x", .argv = argv, .envp = environ, .cgroup = cgroup_.fd()},
                                  SpawnDefaults::of_this_process());
  EXPECT_TRUE(child.exec_failed);
  EXPECT_EQ(child.error_number, ENOENT);
  EXPECT_EQ(members(cgroup_), "");
}

TEST_F(RealRunCgroup, TakesWhatIsInItAndBelowItAlong) {
  SpawnResult child = start(cgroup_, "exec sleep 1000");
  ASSERT_TRUE(child.ok());
  fs::create_directories(cgroup_.folder() / "inner/innermost");
  std::ofstream(cgroup_.folder() / "inner/innermost/cgroup.procs") << child.child->pid() << std::flush;
  ASSERT_EQ(members(cgroup_), "") << "the process is in the innermost";
  cgroup_.remove();
  EXPECT_FALSE(fs::exists(cgroup_.folder()));
  ASSERT_TRUE(child.child->wait_until_ended(Duration(30'000)));
  EXPECT_EQ(child.child->try_wait(), (ExitStatus{ExitStatus::Kind::kSignaled, SIGKILL}));
}

TEST_F(RealRunCgroup, OfADeadRunIsRemovedByALaterOneButNotOfALivingOne) {
  const std::string name = "unit-test-dead-" + std::to_string(::getpid());
  fs::path abandoned;
  {
    const RunCgroup dead = RunCgroup::make(name);
    ASSERT_TRUE(dead);
    abandoned = dead.folder();
    cgroup_.remove_abandoned();
    EXPECT_TRUE(fs::exists(abandoned)) << "its run lives";
  }
  const fs::path unrelated = cgroup_.folder().parent_path() / ("x-" + name);
  ASSERT_TRUE(fs::create_directory(unrelated));
  cgroup_.remove_abandoned();
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(cgroup_.folder())) << "its own";
  EXPECT_TRUE(fs::remove(unrelated)) << "lrun did not make it";
}

TEST_F(RealRunCgroup, OfAnotherLauncherOfTheRunHasAnotherFolder) {
  const RunCgroup other = RunCgroup::make("unit-test-" + std::to_string(::getpid()));
  ASSERT_TRUE(other);
  EXPECT_EQ(other.folder(), cgroup_.folder().string() + "-2");
  other.remove();
  EXPECT_TRUE(fs::exists(cgroup_.folder()));
}

TEST_F(RealRunCgroup, ThatWasKilledKeepsNobodyFromStarting) {
  cgroup_.kill();
  SpawnResult child = start(cgroup_, "exit 3");
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(child.child->wait_until_ended(Duration(30'000)));
  EXPECT_EQ(child.child->try_wait(), (ExitStatus{ExitStatus::Kind::kExited, 3}));
}

TEST_F(RealRunCgroup, HasRoomInsideForWhatIsStartedAfterAKill) {
  cgroup_.kill();
  const RunCgroup inner = cgroup_.inner("attempt-1");
  ASSERT_TRUE(inner);
  SpawnResult child = start(inner, "exec sleep 1000");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(members(inner), std::to_string(child.child->pid()) + "\n");
  cgroup_.kill();
  ASSERT_TRUE(child.child->wait_until_ended(Duration(30'000)));
  EXPECT_EQ(child.child->try_wait(), (ExitStatus{ExitStatus::Kind::kSignaled, SIGKILL}));
}

TEST_F(RealRunCgroup, ThatIsGoneKeepsNobodyFromStarting) {
  cgroup_.remove();
  SpawnResult child = start(cgroup_, "exit 3");
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(child.child->wait_until_ended(Duration(30'000)));
  EXPECT_EQ(child.child->try_wait(), (ExitStatus{ExitStatus::Kind::kExited, 3}));
}

}  // namespace
}  // namespace lrun
