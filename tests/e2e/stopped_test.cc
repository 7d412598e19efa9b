// One of lrun's two processes is stopped (SIGSTOP), and what then ends the workers: the table in process/guard.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <ostream>
#include <string>
#include <vector>

#include "support/elastic_jobs.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

enum class Process { kGuard, kLauncher };

/// Which one is stopped; the other one is killed.
struct Fault {
  Process stopped;
  bool both_stopped;
  bool killed_first;
  bool of_several_nodes;
};

std::string name_of(const Fault& fault) {
  const bool guard = fault.stopped == Process::kGuard;
  return std::string(fault.killed_first ? "Kill" : "Stop") + (guard == fault.killed_first ? "Launcher" : "Guard") +
         (fault.killed_first ? "Stop" : "Kill") + (guard == fault.killed_first ? "Guard" : "Launcher") +
         (fault.both_stopped ? "BothStopped" : "") + (fault.of_several_nodes ? "OfSeveralNodes" : "OfOneNode");
}

void PrintTo(const Fault& fault, std::ostream* out) { *out << name_of(fault); }

class StoppedLrun : public ::testing::TestWithParam<Fault> {};

TEST_P(StoppedLrun, LeavesNothingWhereTheOtherProcessIsKilled) {
  const auto [stopped, both, killed_first, of_several] = GetParam();
  const std::string port = std::to_string(free_port());
  const Words job{"--nnodes", "1:2", "--rdzv-endpoint", "127.0.0.1:" + port};
  LrunProcess lrun(
      joined(of_several ? job : Words(), {"-n", "2", "sh", "-c", "setsid sleep 1000 & echo ready; exec sleep 1000"}),
      {.environment = {{"LRUN_NO_CGROUP", "1"}}});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready")) << lrun.err();
  ASSERT_TRUE(eventually([&] { return lrun.workers().size() == 4; }));
  const pid_t launcher = lrun.launcher_pid();
  const pid_t to_stop = stopped == Process::kGuard ? lrun.pid() : launcher;
  const pid_t to_kill = stopped == Process::kGuard ? launcher : lrun.pid();
  if (both) ::kill(to_kill, SIGSTOP);
  if (killed_first) {
    ::kill(to_kill, SIGKILL);
    ::kill(to_stop, SIGSTOP);
  } else {
    ::kill(to_stop, SIGSTOP);
    ASSERT_TRUE(eventually([&] { return process_state(to_stop) == 'T'; }));
    ::kill(to_kill, SIGKILL);
  }
  const auto left = [&] {
    std::vector<pid_t> pids = lrun.processes();
    std::erase(pids, lrun.pid());  // it may be stopped when it has ended the others, and is about to end
    return pids.size();
  };
  EXPECT_TRUE(eventually([&] { return left() == 0; }, 20s)) << left() << " are left";
  lrun.signal(SIGCONT);
}

std::vector<Fault> faults() {
  std::vector<Fault> all;
  for (const Process stopped : {Process::kGuard, Process::kLauncher}) {
    for (const bool of_several : {false, true}) {
      all.push_back({stopped, false, false, of_several});
      all.push_back({stopped, true, false, of_several});
      all.push_back({stopped, false, true, of_several});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Stopped, StoppedLrun, ::testing::ValuesIn(faults()),
                         [](const auto& instance) { return name_of(instance.param); });

/// The waker is stopped or killed, then perhaps the guard or the launcher stopped, and at last the other one killed.
struct WakerFault {
  int waker_signal;
  bool other_is_stopped;
  Process killed;
};

std::string name_of(const WakerFault& fault) {
  const bool guard = fault.killed == Process::kGuard;
  return std::string(fault.waker_signal == SIGSTOP ? "Stopped" : "Killed") +
         (fault.other_is_stopped ? (guard ? "LauncherStopped" : "GuardStopped") : "") +
         (guard ? "GuardKilled" : "LauncherKilled");
}

void PrintTo(const WakerFault& fault, std::ostream* out) { *out << name_of(fault); }

class LostWaker : public ::testing::TestWithParam<WakerFault> {};

TEST_P(LostWaker, LeavesNothingWhereAnotherProcessIsKilled) {
  const auto [waker_signal, other_is_stopped, killed] = GetParam();
#ifdef __SANITIZE_THREAD__
  if (killed == Process::kGuard) GTEST_SKIP() << "ThreadSanitizer puts off the handler of the launcher's death signal";
#endif
  LrunProcess lrun({"-n", "1", "sh", "-c", "setsid sleep 1000 & echo ready; exec sleep 1000"},
                   {.environment = {{"LRUN_NO_CGROUP", "1"}}});
  ASSERT_TRUE(lrun.wait_for("[0] ready")) << lrun.err();
  const pid_t launcher = lrun.launcher_pid();
  // A worker may be ready before the guard comes to it.
  const bool has_waker = eventually([&] { return lrun.waker_pid() != kNoProcess; }, 5s);
  if (!has_waker) GTEST_SKIP() << "there are no pidfds here";
  const pid_t waker = lrun.waker_pid();
  const auto stop = [](pid_t pid) {
    ::kill(pid, SIGSTOP);
    return eventually([pid] { return process_state(pid) == 'T'; });
  };
  if (waker_signal == SIGSTOP) {
    ASSERT_TRUE(stop(waker));
  } else {
    ::kill(waker, SIGKILL);
    ASSERT_TRUE(eventually([&] { return lrun.waker_pid() == kNoProcess; }));
  }
  if (other_is_stopped) {
    ASSERT_TRUE(stop(killed == Process::kGuard ? launcher : lrun.pid()));
  }
  ::kill(killed == Process::kGuard ? lrun.pid() : launcher, SIGKILL);
  (void)lrun.wait();
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); })) << process_state(waker);
}

std::vector<WakerFault> waker_faults() {
  std::vector<WakerFault> all;
  for (const int waker_signal : {SIGSTOP, SIGKILL}) {
    for (const Process killed : {Process::kGuard, Process::kLauncher}) {
      for (const bool other_is_stopped : {false, true}) all.push_back({waker_signal, other_is_stopped, killed});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Waker, LostWaker, ::testing::ValuesIn(waker_faults()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST(Stopped, AGuardIsContinuedByTheEndOfItsRun) {
  const TemporaryFolder folder;
  const std::string go = folder.path() / "go";
  LrunProcess lrun({"-n", "1", "sh", "-c", "echo ready; until [ -e " + go + " ]; do sleep 0.01; done; exit 7"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  lrun.signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return process_state(lrun.pid()) == 'T'; }));
  (void)folder.script("go", "");
  EXPECT_EQ(lrun.wait().code, 7) << lrun.err();
}

TEST(Stopped, ARunOfOneNodeGoesOnWhenItsLauncherIsContinued) {
  const TemporaryFolder folder;
  const std::string go = folder.path() / "go";
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo ready; until [ -e " + go + " ]; do sleep 0.01; done; echo done"});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  for (const pid_t pid : {lrun.launcher_pid(), lrun.pid()}) {
    ::kill(pid, SIGSTOP);
    ASSERT_TRUE(eventually([&] { return process_state(pid) == 'T'; }));
    ::kill(pid, SIGCONT);
    ASSERT_TRUE(eventually([&] { return process_state(pid) == 'S'; }));
  }
  (void)folder.script("go", "");
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_THAT(lrun.out(), HasSubstr("[1] done"));
}

/// A worker of the node that is stopped says who it is, with a process in a session of its own; those of the next round
/// say which of them still run.
class StoppedNodes : public ElasticJobs {
 protected:
  [[nodiscard]] Words watchful(int nodes, int stopped) const {
    const std::string pids = folder_.path() / "pids";
    return shell("if [ $WORLD_SIZE = " + std::to_string(nodes) + " ]; then setsid sleep 1000 & [ $RANK != " +
                 std::to_string(stopped) + " ] || echo $$ $! > " + pids + "; else for pid in $(cat " + pids +
                 "); do if grep '^State:.[^Z]' /proc/$pid/status; then echo twice $pid; fi; done; fi; " +
                 program().back());
  }
};

TEST_F(StoppedNodes, HaveNoWorkersWhenTheOthersBeginWithoutThem) {
  for (const bool guard_is_stopped : {false, true}) {
    std::filesystem::remove(end_);
    Job job({"--nnodes", "1:2", "--rdzv-conf", "heartbeat_timeout=3"});
    LrunProcess& first = job.start({"--node-rank", "0"}, watchful(2, 1));
    LrunProcess& second = job.start({"--node-rank", "1"}, watchful(2, 1));
    ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
    const pid_t launcher = second.launcher_pid();
    if (guard_is_stopped) second.signal(SIGSTOP);
    ::kill(launcher, SIGSTOP);
    ASSERT_TRUE(first.wait_for("rank 0/1 of 1 count 0.")) << first.err();
    EXPECT_THAT(first.out(), Not(HasSubstr("twice")));
    EXPECT_TRUE(second.workers().empty());
    ::kill(launcher, SIGCONT);
    EXPECT_EQ(second.wait().code, 125) << second.err();
    EXPECT_THAT(second.err(), Not(HasSubstr("died of SIGKILL"))) << "lrun ended it itself: ";
    end();
    expect_success({&first});
  }
}

TEST_F(StoppedNodes, HaveNoWorkersWhenTheOthersHaveReplacedTheirLeader) {
  Job job({"--nnodes", "1:3"});
  LrunProcess& leader =
      job.start({"--node-rank", "0", "--rdzv-conf", "heartbeat_timeout=3,last_call_timeout=300"}, watchful(3, 0));
  const char* const conf = "heartbeat_timeout=3,is_host=false";
  LrunProcess& second = job.start({"--node-rank", "1", "--rdzv-conf", conf}, watchful(3, 0));
  LrunProcess& third = job.start({"--node-rank", "2", "--rdzv-conf", conf}, watchful(3, 0));
  ASSERT_TRUE(leader.wait_for("rank 0/3") && second.wait_for("rank 1/3") && third.wait_for("rank 2/3"));
  const pid_t launcher = leader.launcher_pid();
  ::kill(launcher, SIGSTOP);
  ASSERT_TRUE(second.wait_for("/2 of 2 count 0.") && third.wait_for("/2 of 2 count 0.")) << second.err();
  EXPECT_THAT(second.out() + third.out(), Not(HasSubstr("twice"))) << second.out() << third.out();
  EXPECT_TRUE(leader.workers().empty());
  ::kill(launcher, SIGCONT);
  EXPECT_EQ(leader.wait().code, 125) << leader.err();
  end();
  expect_success({&second, &third});
}

TEST_F(StoppedNodes, StartTheirWorkersAgainWhereNobodyHasBegunWithoutThem) {
  Job job({"--nnodes", "1:2", "--rdzv-conf", "heartbeat_timeout=1"});
  LrunProcess& node = job.start({"--node-rank", "0"}, program());
  ASSERT_TRUE(node.wait_for("rank 0/1 of 1 count 0.")) << node.err();
  const pid_t launcher = node.launcher_pid();
  ::kill(launcher, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return node.workers().empty(); })) << "no rank may run twice";
  ::kill(launcher, SIGCONT);
  ASSERT_TRUE(node.read_until([&] { return count(node.out(), "rank 0/1 of 1 count 0.") == 2; })) << node.err();
  EXPECT_THAT(node.err(), HasSubstr(" was stopped for too long, and its workers were ended"));
  EXPECT_THAT(node.err(), Not(HasSubstr("died of SIGKILL"))) << "no rank is to blame: ";
  end();
  expect_success({&node});
}

}  // namespace
}  // namespace lrun::test
