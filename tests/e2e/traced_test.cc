// A process that dies under a tracer which does not wait for it, as a debugger at its prompt: a zombie that its parent
// cannot reap.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

#include "support/lrun_process.h"
#include "support/words.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kMoment = 4s;  ///< less than lrun gives the kernel to end a process

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Outside of lrun, from now on until the end of the test.
class Tracer {
 public:
  explicit Tracer(pid_t traced, const char* how = "running") {
    Pipe out = make_pipe();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out.write.get(), 1);
      ::execl(IDLE_TRACER, "idle_tracer", std::to_string(traced).c_str(), how, nullptr);
      ::_exit(99);
    }
    out.write.reset();
    char said[64] = {};
    (void)!::read(out.read.get(), said, sizeof said - 1);
    says_ = said;
  }
  ~Tracer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  [[nodiscard]] bool traces() const { return says_ == "tracing\n"; }
  [[nodiscard]] std::string held() const { return "held by tracer " + std::to_string(pid_) + " (idle_tracer)"; }

 private:
  pid_t pid_ = -1;
  std::string says_;
};

/// Of rank 1, which tells it.
pid_t pid_told(const LrunProcess& lrun) {
  const auto at = lrun.out().find("[1] pid ");
  return at == std::string::npos ? -1 : std::stoi(lrun.out().substr(at + 8));
}

/// A shell that is traced must get no signal, as of a child that ended: it would stop, and nobody would continue it.
class Traced : public ::testing::Test {
 protected:
  Traced() {
    ::mkfifo(go_.c_str(), 0600);
    gate_ = Fd(::open(go_.c_str(), O_RDWR | O_CLOEXEC));
  }

  /// Rank 1 tells its pid, and does `then` when told to.
  [[nodiscard]] std::vector<std::string> command(const std::string& then) const {
    return {"-n", "2", "--grace", "0", "sh", "-c", "[ $RANK = 1 ] || exec sleep 1000; " + wait_and(then)};
  }
  [[nodiscard]] std::string wait_and(const std::string& then) const {
    return "echo pid $$.; read go < " + go_.string() + "; " + then;
  }
  void go() const { EXPECT_EQ(::write(gate_.get(), "go\n", 3), 3); }

  TemporaryFolder folder_;
  std::filesystem::path go_ = folder_.path() / "go";
  Fd gate_;
};

TEST_F(Traced, AWorkersFailureIsToldAndNotWaitedFor) {
  LrunProcess lrun(command("exit 3"));
  ASSERT_TRUE(lrun.wait_for("[1] pid ")) << lrun.err();
  const Tracer tracer(pid_told(lrun));
  if (!tracer.traces()) GTEST_SKIP() << "this process may not trace others";
  const auto begin = std::chrono::steady_clock::now();
  go();
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kMoment);
  EXPECT_TRUE(contains(lrun.err(), "lrun: error: rank 1 ") && contains(lrun.err(), "exited with code 3")) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr(tracer.held()));
  EXPECT_THAT(lrun.err(), Not(HasSubstr("uninterruptible")));
}

TEST_F(Traced, AWorkersSuccessIsToldWhileTheOthersGoOn) {
  LrunProcess lrun(command("exit 0"));
  ASSERT_TRUE(lrun.wait_for("[1] pid ")) << lrun.err();
  const Tracer tracer(pid_told(lrun));
  if (!tracer.traces()) GTEST_SKIP() << "this process may not trace others";
  go();
  EXPECT_TRUE(eventually([&] { return contains(text_of(lrun.run_folder() / "events.jsonl"), "worker_ended"); }))
      << text_of(lrun.run_folder() / "events.jsonl");
  EXPECT_EQ(process_state(pid_told(lrun)), 'Z');
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
}

/// A debugger that has stopped it, as one that has just been started.
TEST_F(Traced, AStoppedWorkerIsKilledAndNotWaitedFor) {
  LrunProcess lrun(command("exit 0"));
  ASSERT_TRUE(lrun.wait_for("[1] pid ")) << lrun.err();
  const Tracer tracer(pid_told(lrun), "stopped");
  if (!tracer.traces()) GTEST_SKIP() << "this process may not trace others";
  const auto begin = std::chrono::steady_clock::now();
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kMoment);
  EXPECT_THAT(lrun.err(), HasSubstr(tracer.held()));
}

/// It is not dead, and not even SIGKILL gets it on.
TEST_F(Traced, AWorkerThatIsStoppedOnItsWayOutIsSaidToBeHeld) {
  LrunProcess lrun(command("exit 3"));
  ASSERT_TRUE(lrun.wait_for("[1] pid ")) << lrun.err();
  const Tracer tracer(pid_told(lrun), "exiting");
  if (!tracer.traces()) GTEST_SKIP() << "this process may not trace others";
  go();
  ASSERT_TRUE(eventually([&] { return process_state(pid_told(lrun)) == 't'; }));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("1 process cannot be ended (" + tracer.held() + ")"));
}

/// Nothing else would let go of it: the tracer belongs to the run.
TEST_F(Traced, ATracerBelowLrunIsEndedFirst) {
  const std::string said = folder_.path() / "said";
  ASSERT_EQ(::mkfifo(said.c_str(), 0600), 0);
  LrunProcess lrun(
      command("setsid " IDLE_TRACER " $$ > " + said + " & read words < " + said + "; echo $words.; exit 3"));
  ASSERT_TRUE(lrun.wait_for("[1] pid ")) << lrun.err();
  const auto begin = std::chrono::steady_clock::now();
  go();
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  if (!contains(lrun.out(), "[1] tracing.")) GTEST_SKIP() << "a process may not trace its parent";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kMoment);
  EXPECT_THAT(lrun.err(), Not(HasSubstr("cannot be ended")));
  EXPECT_EQ(process_state(pid_told(lrun)), ' ') << "it was reaped";
}

TEST_F(Traced, AWorkerDoesNotKeepARunFromStartingAgain) {
  LrunProcess lrun({"-n", "1", "--max-restarts", "1", "sh", "-c",
                    "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; " + wait_and("exit 3")});
  ASSERT_TRUE(lrun.wait_for("pid ")) << lrun.err();
  const Tracer tracer(std::stoi(lrun.out().substr(lrun.out().find("pid ") + 4)));
  if (!tracer.traces()) GTEST_SKIP() << "this process may not trace others";
  go();
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
}

TEST_F(Traced, AWorkerIsToldWithoutPidfds) {
  LrunProcess lrun(command("exit 0"), {.environment = {{"LRUN_NO_PIDFD", "1"}}});
  ASSERT_TRUE(lrun.wait_for("[1] pid ")) << lrun.err();
  const Tracer tracer(pid_told(lrun));
  if (!tracer.traces()) GTEST_SKIP() << "this process may not trace others";
  go();
  ASSERT_TRUE(eventually([&] { return process_state(pid_told(lrun)) == 'Z'; }));
  const auto begin = std::chrono::steady_clock::now();
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kMoment);
}

TEST_F(Traced, TheLaunchersDeathIsSeenByTheGuard) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "setsid sleep 1000 & echo ready; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready")) << lrun.err();
  const pid_t launcher = lrun.launcher_pid();
  const Tracer tracer(launcher);
  if (!tracer.traces()) GTEST_SKIP() << "this process may not trace others";
  const auto begin = std::chrono::steady_clock::now();
  ::kill(launcher, SIGKILL);
  EXPECT_EQ(lrun.wait().code, 125) << lrun.err();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kMoment);
  EXPECT_THAT(lrun.err(), HasSubstr("lrun itself died of SIGKILL"));
  EXPECT_THAT(lrun.err(), HasSubstr(tracer.held()));
}

}  // namespace
}  // namespace lrun::test
