// So many workers that their start takes a while: everything else goes on meanwhile.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/lrun_process.h"
#include "support/words.h"

namespace lrun::test {
namespace {

namespace fs = std::filesystem;

constexpr int kWorkers = 1000;

/// Every worker makes a file of the name of its rank.
class ManyWorkers : public ::testing::Test {
 protected:
  [[nodiscard]] Words command(const std::string& then, const Words& options = {}) const {
    const Words run = joined(options, {"-n", std::to_string(kWorkers), "--grace", "5s"});
    return joined(run, shell("> " + folder_.path().string() + "/$RANK; " + then));
  }
  [[nodiscard]] bool has_started(int rank) const { return fs::exists(folder_ / std::to_string(rank)); }
  [[nodiscard]] std::ptrdiff_t started() const {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  }

  TemporaryFolder folder_;
};

TEST_F(ManyWorkers, AreNotAllStartedWhereASignalComesMeanwhile) {
  LrunProcess lrun(command("exec sleep 1000"));
  ASSERT_TRUE(lrun.read_until([&] { return has_started(0); })) << lrun.err();
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_LT(started(), kWorkers) << "it was heard when all had been started";
}

TEST_F(ManyWorkers, AreNotToBlameWhereTheGuardDiesMeanwhile) {
  LrunProcess lrun(command("exec sleep 1000"));
  ASSERT_TRUE(lrun.read_until([&] { return has_started(0); })) << lrun.err();
  lrun.signal(SIGKILL);
  EXPECT_EQ(lrun.wait().signal_number, SIGKILL) << lrun.err();
  EXPECT_TRUE(lrun.wait_for("lrun: error: the run was stopped: lrun itself was killed")) << lrun.err();
  EXPECT_FALSE(contains(lrun.err(), "died of SIGKILL")) << lrun.err();
  EXPECT_LT(started(), kWorkers) << "it was heard when all had been started";
}

TEST_F(ManyWorkers, AreNotAllStartedWhereOneFailsMeanwhile) {
  LrunProcess lrun(command("[ $RANK = 1 ] && exit 3; exec sleep 1000"));
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "lrun: error: rank 1 ")) << lrun.err();
  EXPECT_LT(started(), kWorkers) << "it was seen when all had been started";
}

TEST_F(ManyWorkers, StandStillWhileTheRunIsSuspended) {
  LrunProcess lrun(command("true"), {.before_exec = [] { ::setpgid(0, 0); }});
  ASSERT_TRUE(lrun.read_until([&] { return has_started(0); })) << lrun.err();
  lrun.signal(SIGTSTP);
  ASSERT_TRUE(eventually([&] { return process_state(lrun.pid()) == 'T'; }));
  EXPECT_TRUE(eventually([&] { return process_state(lrun.launcher_pid()) == 'S'; })) << "it starts nobody";
  EXPECT_LT(started(), kWorkers);
  lrun.signal(SIGCONT);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(started(), kWorkers);
}

TEST_F(ManyWorkers, AreToldTogetherThoughTheFirstHaveEndedBeforeTheLastBegan) {
  LrunProcess lrun(command("echo done"));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(count(lrun.out(), "] done\n"), kWorkers);
  std::ifstream events(lrun.run_folder() / "events.jsonl");
  std::string line;
  std::getline(events, line);
  const auto first = nlohmann::json::parse(line);
  EXPECT_EQ(first["event"], "run_started");
  EXPECT_EQ(first["workers"].size(), kWorkers);
  int ended = 0;
  while (std::getline(events, line)) ended += contains(line, R"("event":"worker_ended")") ? 1 : 0;
  EXPECT_EQ(ended, kWorkers);
}

/// The program is removed after some of the workers have started.
TEST_F(ManyWorkers, LeaveNothingWhereTheirProgramGoesMeanwhile) {
  for (const int attempt : {0, 1}) {
    const TemporaryFolder folder;
    const std::string rank = folder.path().string() + "/$RANK";
    const std::string program = folder.script(
        "program", "#!/bin/sh\n> " + rank + "\n[ $TORCHELASTIC_RESTART_COUNT = " + std::to_string(attempt) +
                       " ] || exit 3\n[ $RANK = 0 ] || exec sleep 1000\nuntil [ -e " + folder.path().string() +
                       "/100 ]; do sleep 0.01; done; rm $0; exec sleep 1000\n");
    LrunProcess lrun({"-n", std::to_string(kWorkers), "--max-restarts", "1", "--restart-backoff", "0", program});
    EXPECT_EQ(lrun.wait().code, 127) << lrun.err();
    EXPECT_TRUE(contains(lrun.err(), "cannot run '" + program + "': No such file or directory")) << lrun.err();
  }
}

/// A number of processes that this one and those below it may be.
class ProcessLimit {
 public:
  ProcessLimit() {
    std::string pattern = "/sys/fs/cgroup/pids/lrun-test-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ProcessLimit() {
    if (!path_.empty()) eventually([this] { return ::rmdir(path_.c_str()) == 0; }, 10s);
  }
  ProcessLimit(const ProcessLimit&) = delete;
  ProcessLimit& operator=(const ProcessLimit&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_F(ManyWorkers, ThatCannotBeStartedAgainDoNotHideWhyTheOthersEnded) {
  const ProcessLimit limit;
  if (limit.path().empty()) GTEST_SKIP() << "no cgroup of version 1 for processes can be made here";
  LrunProcess lrun(
      command("[ $RANK = 0 ] || exec sleep 1000; [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 3; until [ -e " +
                  folder_.path().string() + "/100 ]; do sleep 0.01; done; echo 1 > " + limit.path() +
                  "/pids.max; exec sleep 1000",
              {"--max-restarts", "1", "--restart-backoff", "0"}),
      {.before_exec = [&] { std::ofstream(limit.path() + "/cgroup.procs") << ::getpid(); }});
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "no further attempt can start: ")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "rank 0 ") && contains(lrun.err(), "exited with code 3")) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
