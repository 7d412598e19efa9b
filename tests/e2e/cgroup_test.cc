// The cgroup that a run's workers live in. Where lrun may not make one, the tests say so and skip.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "process/run_cgroup.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class Cgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"LRUN_NO_CGROUP", "LRUN_NO_PIDFD", "LRUN_TEST_UNDER"}) {
      if (std::getenv(name) != nullptr) GTEST_SKIP() << name << " is set";
    }
    const RunCgroup probe = RunCgroup::make("e2e-probe-" + std::to_string(::getpid()));
    if (!probe) GTEST_SKIP() << "this process may not make a cgroup of version 2, or Linux is before 5.14";
    parent_ = probe.folder().parent_path();
    probe.remove();
  }

  [[nodiscard]] fs::path folder_of(const LrunProcess& lrun) const {
    return parent_ / ("lrun-" + lrun.run_folder().filename().string());
  }

  fs::path parent_;  ///< the cgroup of this process, and of lrun
};

TEST_F(Cgroup, HoldsTheWorkersOfEachAttemptAndGoesWithTheRun) {
  LrunProcess lrun({"-n", "2", "--max-restarts", "1", "--restart-backoff", "0s", "sh", "-c",
                    "grep ^0:: /proc/self/cgroup; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit; sleep 1000 & exit 3"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  const std::string name = "/" + folder_of(lrun).filename().string();
  EXPECT_THAT(lrun.out(), HasSubstr(name + "\n"));
  EXPECT_THAT(lrun.out(), HasSubstr(name + "/attempt-1\n"));
  EXPECT_FALSE(fs::exists(folder_of(lrun)));
}

TEST_F(Cgroup, IsNotMadeWhenNotWanted) {
  LrunProcess lrun({"-n", "1", "grep", "^0::", "/proc/self/cgroup"}, {.environment = {{"LRUN_NO_CGROUP", "1"}}});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_THAT(lrun.out(), Not(HasSubstr("/lrun-")));
}

constexpr const char* kWithDaemon = "setsid sh -c 'trap \"\" TERM; echo ready; sleep 1000' & exec sleep 1000";

TEST_F(Cgroup, GoesAfterKillOfTheGuard) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kWithDaemon});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  const fs::path folder = folder_of(lrun);
  EXPECT_TRUE(fs::exists(folder));
  lrun.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return !fs::exists(folder); }));
}

TEST_F(Cgroup, GoesAfterKillOfTheLauncher) {
  LrunProcess lrun({"-n", "1", "sh", "-c", kWithDaemon});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  ASSERT_EQ(::kill(lrun.launcher_pid(), SIGKILL), 0);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_FALSE(fs::exists(folder_of(lrun)));
}

TEST_F(Cgroup, GoesAfterKillOfBoth) {
  fs::path folder;
  ASSERT_TRUE(eventually([&] {
    LrunProcess lrun({"-n", "1", "sh", "-c", kWithDaemon});
    EXPECT_TRUE(lrun.wait_for("[0] ready"));
    folder = folder_of(lrun);
    return kill_both(lrun);
  }));
  EXPECT_TRUE(eventually([&] { return !fs::exists(folder); }));
}

TEST_F(Cgroup, LetsALaterRunEndWhatARunLeftThatWasKilledWithoutMercy) {
  fs::path folder;
  std::unique_ptr<LrunProcess> lrun;
  const auto killed_together = [&] {  // false: one of the two had the time to clean up
    lrun = std::make_unique<LrunProcess>(std::vector<std::string>{"-n", "1", "sh", "-c", kWithDaemon});
    EXPECT_TRUE(lrun->wait_for("[0] ready"));
    folder = folder_of(*lrun);
    EXPECT_TRUE(eventually([&] { return lrun->waker_pid() != kNoProcess; }));  // a worker may be ready before
    EXPECT_EQ(::kill(lrun->waker_pid(), SIGKILL), 0);
    return kill_both(*lrun) && fs::exists(folder);
  };
  ASSERT_TRUE(eventually(killed_together));
  EXPECT_TRUE(eventually([&] {  // one of them; what was killed may take its time on a busy machine
    LrunProcess later({"-n", "1", "sleep", "0.1"});
    EXPECT_EQ(later.wait().code, 0);
    return !fs::exists(folder);
  }));
}

/// A cgroup given to a user who is not root, as systemd does it.
class GivenCgroup {
 public:
  GivenCgroup(const fs::path& parent, const passwd& user)
      : path_(parent / ("e2e-given-" + std::to_string(::getpid()))) {
    fs::create_directory(path_);
    for (const char* const file : {".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"}) {
      if (::chown((path_ / file).c_str(), user.pw_uid, user.pw_gid) != 0) given_ = false;
    }
  }
  ~GivenCgroup() {
    eventually([this] { return ::rmdir(path_.c_str()) == 0; }, 5s);
  }
  GivenCgroup(const GivenCgroup&) = delete;
  GivenCgroup& operator=(const GivenCgroup&) = delete;

  [[nodiscard]] bool given() const { return given_; }
  /// In a forked child: enters it and becomes the user.
  void enter_as(const passwd& user) const {
    const int file = ::open((path_ / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (::write(file, "0", 1) != 1) ::_exit(98);
    ::close(file);
    if (::setgid(user.pw_gid) != 0 || ::setuid(user.pw_uid) != 0) ::_exit(98);
  }

 private:
  fs::path path_;
  bool given_ = true;
};

/// A copy of setpriv(1) that anybody runs as root. \return empty when that cannot be.
std::string setuid_setpriv(const TemporaryFolder& folder) {
  const fs::path copy = folder / "setpriv";
  struct statvfs facts {};
  if (::statvfs(folder.path().c_str(), &facts) != 0 || (facts.f_flag & ST_NOSUID) != 0) return {};
  std::error_code error;
  if (!fs::copy_file("/usr/bin/setpriv", copy, error)) return {};
  return ::chmod(folder.path().c_str(), 0755) == 0 && ::chmod(copy.c_str(), 04755) == 0 ? copy.string() : "";
}

/// kill() of whoever is not root is refused then.
TEST_F(Cgroup, EndsWhatBecameAnotherUser) {
  const passwd* const nobody = ::getuid() == 0 ? ::getpwnam("nobody") : nullptr;
  if (nobody == nullptr) GTEST_SKIP() << "only root can hand a cgroup to somebody else";
  const TemporaryFolder tools;
  const std::string setpriv = setuid_setpriv(tools);
  if (setpriv.empty()) GTEST_SKIP() << "no setpriv(1), or set-user-ID programs do not work here";
  const GivenCgroup given(parent_, *nobody);
  ASSERT_TRUE(given.given());
  const std::string pipe = (tools / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(pipe.c_str(), 0666), 0);
  LrunProcess lrun({"-n", "1", "sh", "-c",
                    "setsid \"$0\" --reuid 0 sh -c 'id -u > $0; exec sleep 1000' \"$1\" & read user < \"$1\"; "
                    "echo became $user; exit 4",
                    setpriv, pipe},
                   {.before_exec = [&] { given.enter_as(*nobody); }});
  const LrunEnd end = lrun.wait();
  if (end.code == 99) GTEST_SKIP() << "other users may not execute the built lrun";
  EXPECT_EQ(end.code, 4) << lrun.err();
  EXPECT_THAT(lrun.out(), HasSubstr("became 0")) << lrun.err();
  EXPECT_THAT(lrun.err(), Not(HasSubstr("cannot be ended")));
}

}  // namespace
}  // namespace lrun::test
