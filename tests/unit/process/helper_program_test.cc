#include "process/helper_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "base/process_stat.h"
#include "process/signal_set.h"
#include "support/patience.h"

namespace lrun {
namespace {

using namespace std::chrono_literals;

using ::testing::HasSubstr;

/// The output of a helper, and how it ended.
struct Result {
  std::string output;
  std::string errors;
  std::optional<ExitStatus> status;
};

HelperRequest shell(const std::string& script) {
  return {.path = "/bin/sh", .argv = {"sh", "-c", script}, .environment = std::vector<std::string>{"WORD=value"}};
}

Result run(const HelperRequest& request) {
  EventLoop loop;
  Result result;
  const HelperProgram program(loop, request,
                              {.output = [&](std::string_view bytes) { result.output += bytes; },
                               .errors = [&](std::string_view bytes) { result.errors += bytes; },
                               .ended =
                                   [&](std::optional<ExitStatus> status) {
                                     result.status = status;
                                     loop.stop();
                                   }});
  const EventLoop::Timer patience = loop.after(test::kPatience, [&] { loop.stop(); });
  loop.run();
  return result;
}

bool is_gone(pid_t pid) {
  const std::optional<ProcessStat> stat = stat_of_process(pid);
  return !stat || stat->state == 'Z';
}

bool is_gone_soon(pid_t pid) {
  for (const auto end = std::chrono::steady_clock::now() + test::kPatience; std::chrono::steady_clock::now() < end;) {
    if (is_gone(pid)) return true;
    ::usleep(1000);
  }
  return false;
}

TEST(HelperProgram, TellsWhatItPrintsAndHowItEnds) {
  const Result result = run(shell("echo $WORD; echo wrong >&2; read x || exit 3"));
  EXPECT_EQ(result.output, "value\n");
  EXPECT_EQ(result.errors, "wrong\n");
  EXPECT_EQ(result.status, (ExitStatus{ExitStatus::Kind::kExited, 3})) << "there is nothing to read";
}

TEST(HelperProgram, HasTheEnvironmentOfThisProcessWhereNoneIsGiven) {
  ::setenv("LRUN_TEST_WORD", "here", 1);
  HelperRequest request = shell("echo $LRUN_TEST_WORD");
  request.environment.reset();
  EXPECT_EQ(run(request).output, "here\n");
  ::unsetenv("LRUN_TEST_WORD");
}

TEST(HelperProgram, HasNoDescriptorOfThisProcess) {
  const int leaked = ::open("/dev/null", O_RDONLY);  // NOLINT: without CLOEXEC, as of a careless parent of lrun
  const Result result = run(shell("for fd in /proc/self/fd/*; do echo -n \"${fd##*/} \"; done"));
  EXPECT_EQ(result.output, "0 1 2 3 ") << "the last one is of the shell's own look";
  ::close(leaked);
}

TEST(HelperProgram, IsGivenBackSignalsAndTheLimitOfDescriptors) {
  HelperRequest request = shell("grep -E 'Sig(Blk|Ign)' /proc/self/status; ulimit -n");
  request.defaults.file_limit.rlim_cur = 77;
  const sigset_t blocked = signal_set({SIGTERM});
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  ::signal(SIGPIPE, SIG_IGN);
  const Result result = run(request);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(result.output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n77\n");
}

TEST(HelperProgram, LeadsASessionOfItsOwn) {
  const Result result = run(shell("read -r stat < /proc/self/stat; echo $$ $stat"));
  const auto pid = result.output.substr(0, result.output.find(' '));
  const std::optional<ProcessStat> stat = parse_process_stat(result.output.substr(pid.size() + 1));
  ASSERT_TRUE(stat) << result.output;
  EXPECT_EQ(std::to_string(stat->session), pid);
  EXPECT_EQ(std::to_string(stat->group), pid);
}

TEST(HelperProgram, DiesWithThisProcess) {
  Pipe told = make_pipe();
  const pid_t starter = ::fork();
  if (starter == 0) {
    EventLoop loop;
    const HelperProgram program(loop, shell("echo $$; exec sleep 1000"), {.output = [&](std::string_view bytes) {
                                  (void)!::write(told.write.get(), bytes.data(), bytes.size());
                                  ::raise(SIGKILL);
                                }});
    loop.run();
    ::_exit(1);
  }
  ::waitpid(starter, nullptr, 0);
  char pid[16] = {};
  ASSERT_GT(::read(told.read.get(), pid, sizeof pid - 1), 0);
  EXPECT_TRUE(is_gone_soon(std::atoi(pid)));  // NOLINT: of our own shell
}

void write_at_exit() { (void)!::write(STDERR_FILENO, "an exit handler ran", 19); }

TEST(HelperProgram, ThatCannotBeExecutedIsAnErrorAndLeavesNothing) {
  [[maybe_unused]] static const int registered = std::atexit([] {
    if (std::getenv("LRUN_TEST_EXIT") != nullptr) write_at_exit();
  });
  ::setenv("LRUN_TEST_EXIT", "1", 1);
  testing::internal::CaptureStderr();
  EventLoop loop;
  for (const auto& [path, number] : {std::pair("/no/such/program", ENOENT), std::pair("/dev/null", EACCES)}) {
    try {
      const HelperProgram program(loop, {.path = path, .argv = {path}, .errors = HelperRequest::Stream::kInherited},
                                  {});
      ADD_FAILURE() << path;
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code().value(), number);
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "the child runs no exit handlers";
  ::unsetenv("LRUN_TEST_EXIT");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it is reaped";
  EXPECT_EQ(errno, ECHILD);
}

TEST(HelperProgram, TakesInput) {
  EventLoop loop;
  Result result;
  HelperRequest request = shell("cat; exit 4");
  request.input = HelperRequest::Stream::kPipe;
  HelperProgram program(loop, request,
                        {.output = [&](std::string_view bytes) { result.output += bytes; },
                         .ended =
                             [&](std::optional<ExitStatus> status) {
                               result.status = status;
                               loop.stop();
                             }});
  Fd input = program.take_input();
  EXPECT_EQ(::write(input.get(), "words", 5), 5);
  input.reset();
  loop.run();
  EXPECT_EQ(result.output, "words");
  EXPECT_EQ(result.status, (ExitStatus{ExitStatus::Kind::kExited, 4}));
}

TEST(HelperProgram, IsReadNoLongerThanAMomentWhereItLeavesAProcess) {
  const Result result = run(shell("sleep 1000 & echo $!"));
  EXPECT_EQ(result.status, ExitStatus{});
  const pid_t left = std::stoi(result.output);
  EXPECT_FALSE(is_gone(left));
  ::kill(left, SIGKILL);
}

TEST(HelperProgram, CanTakeItsGroupAlong) {
  HelperRequest request = shell("sleep 1000 & echo $!");
  request.ends_its_group = true;
  EXPECT_TRUE(is_gone_soon(std::stoi(run(request).output)));
}

TEST(HelperProgram, LosesNothingWhileItIsPaused) {
  EventLoop loop;
  std::string output;
  bool ended = false;
  HelperProgram program(loop, shell("echo first; echo second >&2"),
                        {.output = [&](std::string_view bytes) { output += bytes; },
                         .ended =
                             [&](std::optional<ExitStatus>) {
                               ended = true;
                               loop.stop();
                             }});
  program.pause_output(true);
  const EventLoop::Timer later = loop.after(700ms, [&] {  // longer than pipes of an ended program are read
    EXPECT_EQ(output, "");
    EXPECT_FALSE(ended);
    program.pause_output(false);
  });
  loop.run();
  EXPECT_EQ(output, "first\n");
}

TEST(HelperProgram, IsSeenToEndWithoutAPidfd) {
  HelperRequest request = shell("exit 5");
  request.defaults.use_pidfds = false;
  EXPECT_EQ(run(request).status, (ExitStatus{ExitStatus::Kind::kExited, 5}));
}

TEST(HelperProgram, IsSeenToEndUnderATracerThatDoesNotWait) {
  EventLoop loop;
  bool ended = false;
  Pipe held = make_pipe();
  std::optional<HelperProgram> program;
  pid_t tracer = -1;
  bool traced = false;
  program.emplace(loop, shell("echo $$; exec sleep 1000"),
                  HelperProgram::Events{.output =
                                            [&](std::string_view bytes) {
                                              const pid_t pid = std::stoi(std::string(bytes));
                                              tracer = ::fork();
                                              if (tracer == 0) {
                                                const char yes = ::ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 ? 'y' : 'n';
                                                (void)!::write(held.write.get(), &yes, 1);
                                                while (true) ::pause();
                                              }
                                              char answer = 'n';
                                              (void)!::read(held.read.get(), &answer, 1);
                                              traced = answer == 'y';
                                              program->signal(SIGKILL);
                                            },
                                        .ended =
                                            [&](std::optional<ExitStatus>) {
                                              ended = true;
                                              loop.stop();
                                            }});
  const EventLoop::Timer patience = loop.after(test::kPatience, [&] { loop.stop(); });
  loop.run();
  ::kill(tracer, SIGKILL);
  ::waitpid(tracer, nullptr, 0);
  EXPECT_TRUE(ended);
  program.reset();
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {  // the tracer let it go: it is reaped
  }
  if (!traced) GTEST_SKIP() << "no process may be traced here";
}

TEST(HelperProgram, EndsWithItsObject) {
  EventLoop loop;
  { const HelperProgram program(loop, shell("exec sleep 1000"), {}); }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it is reaped";
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace lrun
