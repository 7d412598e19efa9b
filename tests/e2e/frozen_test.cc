// A process that the kernel does not let end: lrun says so and ends without it. Played with a frozen cgroup of version
// 1, which not even SIGKILL leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/launchers_of_a_job.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;

class Freezer {
 public:
  Freezer() {
    std::string pattern = "/sys/fs/cgroup/freezer/lrun-test-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Freezer() {
    if (path_.empty()) return;
    set("THAWED");
    eventually([this] { return ::rmdir(path_.c_str()) == 0; }, 10s);
  }
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;

  void set(const std::string& state) const { std::ofstream(path_ + "/freezer.state") << state; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Frozen, AWorkerThatCannotBeKilledIsReportedAndNotWaitedFor) {
  const Freezer freezer;
  if (freezer.path().empty()) GTEST_SKIP() << "no cgroup of version 1 with a freezer can be made here";
  const TemporaryFolder folder;
  const std::string go = folder.path() / "go";
  LrunProcess lrun({"-n", "2", "--grace", "0", "sh", "-c",
                    "if [ $RANK = 0 ]; then until [ -e $1 ]; do sleep 0.01; done; exit 3; fi; "
                    "echo 0 > $0/cgroup.procs; echo armed; exec sleep 1000",
                    freezer.path(), go});
  ASSERT_TRUE(lrun.wait_for("[1] armed"));
  freezer.set("FROZEN");
  (void)folder.script("go", "");
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("1 process cannot be ended (uninterruptible in the kernel)"));
  EXPECT_THAT(lrun.err(), HasSubstr("; 1 other worker cannot be ended"));
  std::ifstream file(lrun.run_folder() / "result.json");
  const auto result = nlohmann::json::parse(file, nullptr, false);
  EXPECT_EQ(result["culprit"]["rank"], 0);
  EXPECT_EQ(result["workers"][1]["cause"], "lost");
  freezer.set("THAWED");  // the kill is carried out now
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); }));
}

TEST(Frozen, WhatIsBelowAWorkerThatCannotBeKilledIsKilled) {
  const Freezer freezer;
  if (freezer.path().empty()) GTEST_SKIP() << "no cgroup of version 1 with a freezer can be made here";
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "1", "--grace", "0", "bash", "-c",
                    "setsid bash -c 'echo $$ >> \"$0\"; setsid sleep 1000 & echo $! >> \"$0\"; echo up; wait' \"$1\" & "
                    "echo 0 > $0/cgroup.procs; echo armed; while :; do sleep 0.01; done",
                    freezer.path(), folder.path() / "pids"});
  ASSERT_TRUE(lrun.wait_for("up") && lrun.wait_for("armed"));
  std::vector<pid_t> below;
  std::ifstream pids(folder.path() / "pids");
  for (pid_t pid = 0; pids >> pid;) below.push_back(pid);
  ASSERT_EQ(below.size(), 2U);
  freezer.set("FROZEN");
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  for (const pid_t pid : below) EXPECT_FALSE(lrun.is_process(pid)) << "its parent cannot end: " << pid;
  freezer.set("THAWED");
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); }));
}

TEST(Frozen, AJobGoesOnWithoutTheNodeOfAWorkerThatCannotBeKilled) {
  const Freezer freezer;
  if (freezer.path().empty()) GTEST_SKIP() << "no cgroup of version 1 with a freezer can be made here";
  const TemporaryFolder folder;
  const std::string go = folder.path() / "go";
  const Words program{"sh", "-c",
                      "echo rank $RANK/$WORLD_SIZE.; [ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; "
                      "if [ $RANK = 0 ]; then until [ -e $1 ]; do sleep 0.01; done; exit 3; fi; "
                      "echo 0 > $0/cgroup.procs; echo armed; exec sleep 1000",
                      freezer.path(), go};
  Job job({"--nnodes", "1:2", "--grace", "0", "--max-restarts", "1"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  LrunProcess& frozen = job.start({"--node-rank", "1"}, program);
  ASSERT_TRUE(first.wait_for("rank 0/2.") && frozen.wait_for("armed")) << first.err() << frozen.err();
  freezer.set("FROZEN");
  (void)folder.script("go", "");
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_THAT(first.out(), HasSubstr("rank 0/1."));
  EXPECT_THAT(first.err(), HasSubstr("is lost: processes there cannot be ended; 1 of 1:2 nodes goes on"));
  EXPECT_NE(frozen.wait().code, 0);
  EXPECT_THAT(frozen.err(), HasSubstr("1 process cannot be ended"));
  freezer.set("THAWED");  // the kill is carried out now
  EXPECT_TRUE(eventually([&] { return frozen.processes().empty(); }));
}

}  // namespace
}  // namespace lrun::test
