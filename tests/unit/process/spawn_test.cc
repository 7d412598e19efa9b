#include "process/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "base/fd.h"
#include "process/signal_set.h"

namespace lrun {
namespace {

constexpr int kDeadlineMilliseconds = 20'000;

/// Starts `/bin/sh -c script` with its stdout in a pipe.
struct ShellChild {
  explicit ShellChild(const char* script, const SpawnDefaults& defaults = SpawnDefaults::of_this_process()) {
    Pipe pipe = make_pipe();
    char* const argv[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(script), nullptr};
    result = spawn({.path = "/bin/sh", .argv = argv, .envp = environ, .standard_output = pipe.write.get()}, defaults);
    out = std::move(pipe.read);
  }

  std::string output() {
    std::string text;
    char buffer[512];
    ssize_t count = 0;
    while ((count = ::read(out.get(), buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(count));
    return text;
  }

  std::optional<ExitStatus> wait() {
    pollfd ended{result.child->poll_fd(), POLLIN, 0};
    if (::poll(&ended, 1, kDeadlineMilliseconds) != 1) return std::nullopt;
    return result.child->try_wait();
  }

  SpawnResult result;
  Fd out;
};

TEST(Spawn, GivesTheErrnoOfAFailedExecAndLeavesNoChild) {
  char* const argv[] = {const_cast<char*>("x"), nullptr};
  const SpawnResult result =
      spawn({.path = "/nonexistent/x", .argv = argv, .envp = environ}, SpawnDefaults::of_this_process());
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(result.exec_failed);
  EXPECT_EQ(result.error_number, ENOENT);
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST(Spawn, BindsTheChildToItsCpus) {
  cpu_set_t cpus;
  ASSERT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
  std::size_t last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &cpus)) --last;
  CPU_ZERO(&cpus);
  CPU_SET(last, &cpus);
  Pipe pipe = make_pipe();
  char* const argv[] = {const_cast<char*>("grep"), const_cast<char*>("Cpus_allowed_list"),
                        const_cast<char*>("/proc/self/status"), nullptr};
  SpawnRequest request{.path = "/bin/grep", .argv = argv, .envp = environ, .standard_output = pipe.write.get()};
  request.cpus = &cpus;
  request.cpus_bytes = sizeof cpus;
  const SpawnResult result = spawn(request, SpawnDefaults::of_this_process());
  ASSERT_TRUE(result.ok());
  pipe.write.reset();
  char text[64] = {};
  EXPECT_GT(::read(pipe.read.get(), text, sizeof text - 1), 0);
  EXPECT_EQ(std::string(text), "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
  ::waitid(P_PID, static_cast<id_t>(result.child->pid()), nullptr, WEXITED);
}

TEST(Spawn, TellsABindingThatFailsFromAProgramThatCannotBeExecuted) {
  cpu_set_t none;
  CPU_ZERO(&none);
  char* const argv[] = {const_cast<char*>("true"), nullptr};
  SpawnRequest request{.path = "/bin/true", .argv = argv, .envp = environ};
  request.cpus = &none;
  request.cpus_bytes = sizeof none;
  const SpawnResult result = spawn(request, SpawnDefaults::of_this_process());
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(result.exec_failed);
  EXPECT_EQ(result.error_number, EINVAL);
}

TEST(Spawn, ReportsTheExitCode) {
  ShellChild child("exit 3");
  ASSERT_TRUE(child.result.ok());
  EXPECT_EQ(child.wait(), (ExitStatus{ExitStatus::Kind::kExited, 3}));
}

TEST(Spawn, ReportsTheSignalThatKilledTheChildNotAnExitCode) {
  ShellChild child("exec sleep 1000");
  ASSERT_TRUE(child.result.ok());
  EXPECT_EQ(child.result.child->try_wait(), std::nullopt) << "the child must still be running";
  ASSERT_TRUE(child.result.child->signal(SIGKILL));
  const auto status = child.wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(*status, (ExitStatus{ExitStatus::Kind::kSignaled, SIGKILL}));
  EXPECT_EQ(status->shell_code(), 137);
  EXPECT_FALSE(child.result.child->signal(SIGTERM)) << "the pid may belong to someone else by now";
  EXPECT_EQ(child.result.child->try_wait(), status) << "the status stays";
}

TEST(Spawn, MakesTheChildLeaderOfItsSessionAndGroup) {
  ShellChild child("ps -o pid=,sid=,pgid= -p $$");
  ASSERT_TRUE(child.result.ok());
  const std::string pid = std::to_string(child.result.child->pid());
  std::string words;
  for (const char letter : child.output()) {
    if (letter != '\n') words += letter;
  }
  child.wait();
  std::size_t found = 0;
  for (auto at = words.find(pid); at != std::string::npos; at = words.find(pid, at + 1)) ++found;
  EXPECT_EQ(found, 3U) << words;
}

TEST(Spawn, LeavesOnlyTheStandardDescriptors) {
  const Pipe unrelated = make_pipe();
  ShellChild child("ls /proc/self/fd | tr '\\n' ' '");  // ls itself opens the folder as 3
  ASSERT_TRUE(child.result.ok());
  EXPECT_EQ(child.output(), "0 1 2 3 ");
  child.wait();
}

TEST(Spawn, GivesExtraDescriptorsInTheirOrderAlsoFromEachOthersPlaces) {
  const Fd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int swapped[] = {std::max(zero.get(), null.get()), std::min(zero.get(), null.get())};
  ASSERT_GE(swapped[1], kExtraDescriptor);
  Pipe pipe = make_pipe();
  const char* const script = "readlink /proc/self/fd/3 /proc/self/fd/4";
  char* const argv[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(script), nullptr};
  SpawnRequest request{.path = "/bin/sh", .argv = argv, .envp = environ, .standard_output = pipe.write.get()};
  request.extras = swapped;
  const SpawnResult result = spawn(request, SpawnDefaults::of_this_process());
  pipe.write.reset();
  ASSERT_TRUE(result.ok());
  char text[64] = {};
  EXPECT_GT(::read(pipe.read.get(), text, sizeof text - 1), 0);
  const bool is_null_first = null.get() > zero.get();
  EXPECT_STREQ(text, is_null_first ? "/dev/null\n/dev/zero\n" : "/dev/zero\n/dev/null\n");
  (void)result.child->wait_until_ended(Duration(kDeadlineMilliseconds));
}

TEST(Spawn, BlocksNoSignalAndGivesTheLimitBack) {
  const SpawnDefaults defaults = SpawnDefaults::of_this_process();
  const sigset_t blocked = signal_set({SIGTERM});
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  ShellChild child("grep SigBlk /proc/self/status; ulimit -Sn", defaults);
  ::sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  ASSERT_TRUE(child.result.ok());
  EXPECT_EQ(child.output(), "SigBlk:\t0000000000000000\n" + std::to_string(defaults.file_limit.rlim_cur) + "\n");
  child.wait();
}

TEST(ExitStatusWords, SayWhatHappened) {
  EXPECT_EQ((ExitStatus{ExitStatus::Kind::kExited, 3}).text(), "exited with code 3");
  EXPECT_EQ((ExitStatus{ExitStatus::Kind::kSignaled, SIGSEGV, true}).text(),
            "died of SIGSEGV (invalid memory access, core dumped)");
  EXPECT_EQ((ExitStatus{ExitStatus::Kind::kSignaled, SIGUSR1}).text(), "died of SIGUSR1");
}

}  // namespace
}  // namespace lrun
