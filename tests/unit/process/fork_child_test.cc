#include "process/fork_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "process/worker_group.h"

namespace lrun {
namespace {

constexpr Duration kPatience(60'000);

ExitStatus end_of(SpawnResult& started) {
  EXPECT_TRUE(started.ok());
  EXPECT_TRUE(started.child->wait_until_ended(kPatience));
  return started.child->try_wait().value_or(ExitStatus{});
}

TEST(ForkChild, EndsWithTheCodeOfItsFunction) {
  const int here = 7;
  SpawnResult child = fork_child({.function = [&here] { return here; }});
  EXPECT_EQ(end_of(child), (ExitStatus{ExitStatus::Kind::kExited, 7}));
}

TEST(ForkChild, LeadsASessionWithNothingBlockedAndStopSignalsAtTheirDefault) {
  struct sigaction before {};
  struct sigaction ours {};
  ours.sa_handler = [](int) {};
  ::sigaction(SIGTERM, &ours, &before);
  SpawnResult child = fork_child({.function = [] {
    sigset_t blocked;
    ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
    struct sigaction now {};
    ::sigaction(SIGTERM, nullptr, &now);
    const bool free = ::sigismember(&blocked, SIGTERM) == 0 && ::sigismember(&blocked, SIGCHLD) == 0;
    return (::getsid(0) == ::getpid() ? 1 : 0) + (free ? 2 : 0) + (now.sa_handler == SIG_DFL ? 4 : 0);
  }});
  ::sigaction(SIGTERM, &before, nullptr);
  EXPECT_EQ(end_of(child), (ExitStatus{ExitStatus::Kind::kExited, 7}));
}

TEST(ForkChild, KeepsTheDescriptorsThatItIsGivenAndNoOther) {
  const Pipe kept = make_pipe();
  const Pipe closed = make_pipe();
  const int wanted = kept.write.get();
  const int unwanted = closed.write.get();
  SpawnResult child = fork_child({.function =
                                      [=] {
                                        const bool lost = ::fcntl(unwanted, F_GETFD) < 0 && errno == EBADF;
                                        return (::fcntl(wanted, F_GETFD) >= 0 ? 1 : 0) + (lost ? 2 : 0);
                                      },
                                  .standard_output = closed.write.get(),
                                  .descriptors = {wanted}});
  EXPECT_EQ(end_of(child), (ExitStatus{ExitStatus::Kind::kExited, 3}));
}

TEST(ForkChild, IsAWorkerThatItsGroupKills) {
  pid_t pid = 0;
  {
    EventLoop loop;
    WorkerGroup group;
    WorkerCommand command;
    command.function = [] {
      ::pause();
      return 0;
    };
    ASSERT_EQ(group.start(loop, {}, std::span(&command, 1), SpawnDefaults::of_this_process()), std::nullopt);
    pid = group.workers().front().process.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);  // reaped, too
  EXPECT_EQ(errno, ESRCH);
}

TEST(OpenDescriptors, AreThoseOfThisProcess) {
  const Pipe pipe = make_pipe();
  const std::vector<int> open = open_descriptors();
  EXPECT_TRUE(std::is_sorted(open.begin(), open.end()));
  EXPECT_TRUE(std::binary_search(open.begin(), open.end(), pipe.read.get()));
  for (const int fd : open) EXPECT_GE(::fcntl(fd, F_GETFD), 0) << fd;
}

}  // namespace
}  // namespace lrun
