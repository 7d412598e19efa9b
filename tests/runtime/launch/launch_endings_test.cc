// Launches that fail. LrunProcess fails a test that leaves a process behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "support/lrun_process.h"

namespace lrun::detail {
namespace {

using test::LrunProcess;
using namespace std::chrono_literals;

std::string host() {
  char name[256] = {};
  EXPECT_EQ(::gethostname(name, sizeof name - 1), 0);
  return name;
}

/// The exception of launch(), with the pid left out.
std::string verdict_of(const std::string& mode, const std::string& method, int ranks = 3,
                       LrunProcess::Options options = {}) {
  LrunProcess program({mode, method, std::to_string(ranks)}, std::move(options));
  const test::LrunEnd end = program.wait();
  EXPECT_TRUE(end.exited && end.code == 7) << end.code << " " << end.signal_number << "\n"
                                           << program.out() << program.err();
  std::string text = program.out();
  const auto begin = text.find("(pid ");
  if (begin != std::string::npos) text.erase(begin, text.find(" on ", begin) - begin + 4);
  if (const auto at = text.find(host() + ")"); at != std::string::npos) text.erase(at, host().size() + 2);
  return text;
}

/// The ranks of a program that waits: its supervisor has adopted their orphans, which lead no session.
std::vector<pid_t> ranks_of(const LrunProcess& program) {
  std::vector<pid_t> ranks = test::living_children(test::living_children(program.pid()).at(0));
  std::erase_if(ranks, [](pid_t pid) { return ::getsid(pid) != pid; });
  EXPECT_EQ(ranks.size(), 2U);
  return ranks;
}

class LaunchEnding : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, LaunchEnding, testing::Values("ddp_spawn", "ddp_fork"),
                         [](const auto& method) { return method.param; });

TEST_P(LaunchEnding, NamesTheRankThatThrewAndStopsTheOthers) {
  EXPECT_EQ(verdict_of("throw", GetParam()),
            "rank 1 exited with code 1: std::runtime_error: no data on this rank; ranks 0,2 were stopped\n");
}

TEST_P(LaunchEnding, NamesTheSignalThatKilledARank) {
  EXPECT_TRUE(verdict_of("crash", GetParam()).starts_with("rank 1 died of SIGSEGV (invalid memory access"));
}

TEST_P(LaunchEnding, HoldsTheLastWordsOfARankAndPassesThemOn) {
  LrunProcess program({"complain", GetParam(), "2"});
  EXPECT_EQ(program.wait().code, 7);
  EXPECT_NE(program.out().find(": Own: cannot go on; rank 0 was stopped\n"), std::string::npos) << program.out();
  EXPECT_NE(program.out().find("\n    what():  cannot go on\n"), std::string::npos) << program.out();
  EXPECT_NE(program.err().find("first line\nterminate called"), std::string::npos) << program.err();
}

TEST_P(LaunchEnding, NamesARankThatLeftItsFunction) {
  EXPECT_EQ(verdict_of("leave", GetParam()),
            "rank 1 ended with code 0 before the function that launch() runs had returned\n");
}

TEST_P(LaunchEnding, KillsWhoIgnoresTheStopWhenTheGraceIsOver) {
  EXPECT_EQ(verdict_of("refuse", GetParam(), 3, {.environment = {{"TEST_GRACE_MS", "50"}}}),
            "rank 1 exited with code 1: std::runtime_error: no data on this rank; ranks 0,2 had to be killed\n");
}

TEST_P(LaunchEnding, StopsTheRanksAtTheDeadline) {
  const std::string verdict = verdict_of("wait", GetParam(), 2, {.environment = {{"TEST_TIMEOUT_MS", "1500"}}});
  EXPECT_TRUE(verdict.ends_with("the ranks did not end within 1.5 s; ranks 0-1 were stopped\n")) << verdict;
}

TEST_P(LaunchEnding, RefusesALaunchWithinALaunch) {
  EXPECT_EQ(verdict_of("nested", GetParam(), 1),
            "rank 0 exited with code 1: std::logic_error: launch() was called by a function that launch() runs\n");
}

TEST_P(LaunchEnding, LeavesNothingWhenTheProgramIsKilled) {
  LrunProcess program({"wait", GetParam(), "2"});
  ASSERT_TRUE(program.wait_for("waiting")) << program.err();
  // The program, the supervisor, two ranks, two orphans of theirs.
  EXPECT_TRUE(test::eventually([&] { return program.processes().size() >= 6; })) << program.processes().size();
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().signal_number, SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return program.processes().empty(); })) << program.processes().size();
}

TEST_P(LaunchEnding, LeavesNothingWhenTheProgramIsKilledWhileTheSupervisorIsStopped) {
  LrunProcess program({"wait", GetParam(), "2"});
  ASSERT_TRUE(program.wait_for("waiting")) << program.err();
  EXPECT_TRUE(test::eventually([&] { return program.processes().size() >= 6; })) << program.processes().size();
  const pid_t supervisor = test::living_children(program.pid()).at(0);
  ::kill(supervisor, SIGSTOP);
  EXPECT_TRUE(test::eventually([&] { return test::process_state(supervisor) == 'T'; }));
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().signal_number, SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return program.processes().empty(); }, 20s)) << program.processes().size();
}

TEST_P(LaunchEnding, LeavesNothingWhenTheSupervisorIsKilled) {
  LrunProcess program({"wait", GetParam(), "2"});
  ASSERT_TRUE(program.wait_for("waiting")) << program.err();
  const auto children = test::living_children(program.pid());
  ASSERT_EQ(children.size(), 1U);
  const auto ranks = ranks_of(program);
  ::kill(children[0], SIGKILL);
  EXPECT_EQ(program.wait().code, 7);
  EXPECT_NE(program.out().find("the process that supervised the ranks was killed, and they with it\n"),
            std::string::npos)
      << program.out();
  for (const pid_t rank : ranks) EXPECT_TRUE(test::eventually([&] { return !program.is_process(rank); }));
  for (const pid_t orphan : program.processes()) ::kill(orphan, SIGKILL);  // nobody was left to know of them
}

TEST_P(LaunchEnding, IsThatOfTheSignalTheProgramGot) {
  LrunProcess program({"wait", GetParam(), "2"});
  ASSERT_TRUE(program.wait_for("waiting")) << program.err();
  program.signal(SIGINT);
  const test::LrunEnd end = program.wait();
  EXPECT_EQ(end.signal_number, SIGINT) << program.out() << program.err();
}

/// A stderr that nobody reads, like a terminal that was stopped.
void give_full_errors() {
  int ends[2];
  if (::pipe(ends) != 0) ::_exit(99);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const std::string bytes(4096, '.');
  while (::write(ends[1], bytes.data(), bytes.size()) > 0) {
  }
  ::fcntl(ends[1], F_SETFL, 0);
  ::dup2(ends[1], STDERR_FILENO);
}

TEST_P(LaunchEnding, DoesNotWaitForEverForAReaderOfStderr) {
  const std::string verdict = verdict_of(
      "shout", GetParam(), 2,
      {.environment = {{"TEST_TIMEOUT_MS", "2500"}, {"TEST_GRACE_MS", "500"}}, .before_exec = give_full_errors});
  // Whether the grace period was enough for them depends on the machine.
  EXPECT_TRUE(verdict.starts_with("the ranks did not end within 2.5 s; rank")) << verdict;
}

TEST_P(LaunchEnding, WaitsWhileCtrlZStopsProgramAndRanks) {
  // In a group of its own below this process, as a shell with job control starts it.
  LrunProcess program({"wait", GetParam(), "2"}, {.before_exec = [] { ::setpgid(0, 0); }});
  ASSERT_TRUE(program.wait_for("waiting")) << program.err();
  auto all = ranks_of(program);
  all.push_back(program.pid());
  const auto are_all = [&](bool stopped) {
    return std::all_of(all.begin(), all.end(), [&](pid_t pid) { return (test::process_state(pid) == 'T') == stopped; });
  };
  for (int turn = 0; turn < 2; ++turn) {
    program.signal(SIGTSTP);
    EXPECT_TRUE(test::eventually([&] { return are_all(true); })) << "all must stop, also the second time";
    program.signal(SIGCONT);
    EXPECT_TRUE(test::eventually([&] { return are_all(false); })) << "all must go on";
  }
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().signal_number, SIGTERM) << program.out() << program.err();
}

TEST_P(LaunchEnding, LeavesNothingWhenAStoppedProgramIsKilled) {
  LrunProcess program({"wait", GetParam(), "2"}, {.before_exec = [] { ::setpgid(0, 0); }});
  ASSERT_TRUE(program.wait_for("waiting")) << program.err();
  const auto ranks = ranks_of(program);
  program.signal(SIGTSTP);
  for (const pid_t rank : ranks) EXPECT_TRUE(test::eventually([&] { return test::process_state(rank) == 'T'; }));
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().signal_number, SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return program.processes().empty(); })) << program.processes().size();
}

TEST_P(LaunchEnding, ComesAtOnceWithASecondSignal) {
  LrunProcess program({"stay", GetParam(), "2"});
  ASSERT_TRUE(program.wait_for("waiting")) << program.err();
  program.signal(SIGTERM);
  ASSERT_TRUE(program.wait_for("asked\nasked\n")) << program.out();
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().signal_number, SIGTERM);
}

TEST_P(LaunchEnding, IsNotHurriedByASecondHangUp) {
  LrunProcess program({"stay", GetParam(), "2"}, {.environment = {{"TEST_GRACE_MS", "1500"}}});
  ASSERT_TRUE(program.wait_for("waiting")) << program.err();
  const auto begun = std::chrono::steady_clock::now();
  program.signal(SIGHUP);
  ASSERT_TRUE(program.wait_for("asked\nasked\n")) << program.out();
  program.signal(SIGHUP);
  EXPECT_EQ(program.wait().signal_number, SIGHUP);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 1500ms) << "the grace holds";
}

TEST_P(LaunchEnding, IsHurriedByTheFirstInterruptAfterAFailure) {
  LrunProcess program({"linger", GetParam(), "3"});
  ASSERT_TRUE(program.wait_for("asked\nasked\n")) << program.out() << program.err();
  const auto begun = std::chrono::steady_clock::now();
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().signal_number, SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s) << "the grace is 30 s";
}

TEST(Fork, IsRefusedBesideOtherThreads) {
  for (const std::string mode : {"thread", "pool"}) {
    const std::string verdict = verdict_of(mode, "ddp_notebook", 1, {.environment = {{"OMP_NUM_THREADS", "2"}}});
    EXPECT_TRUE(verdict.starts_with("ranks cannot be forked from this process: ")) << verdict;
    EXPECT_NE(verdict.find(" in this process, and a fork has none of them"), std::string::npos) << verdict;
  }
}

TEST(Fork, WorksAfterBackwardOnOneThread) {
  LrunProcess program({"backward", "ddp_fork", "2"});
  EXPECT_EQ(program.wait().code, 0) << program.out() << program.err();
  EXPECT_EQ(program.out(), "went on\n");
}

TEST(Spawn, WorksAfterAnything) {
  for (const std::string mode : {"backward", "thread", "pool"}) {
    LrunProcess program({mode, "ddp_spawn", "1"}, {.environment = {{"OMP_NUM_THREADS", "2"}}});
    EXPECT_EQ(program.wait().code, 0) << program.out() << program.err();
    EXPECT_EQ(program.out(), "went on\n");
  }
}

}  // namespace
}  // namespace lrun::detail
