#include "inspect/run_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/fd.h"

namespace lrun::launcher {
namespace {

/// A child with a child of its own, which becomes `user`, holds a socket that only it has, and stays.
class Grandchild {
 public:
  explicit Grandchild(uid_t user) {
    Pipe told = make_pipe();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::fork() != 0) {
        while (true) ::pause();
      }
      if (user != ::getuid() && ::setresuid(user, user, user) != 0) ::_exit(1);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of the user clears it
      const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      struct stat status {};
      ::fstat(socket, &status);
      if (::write(told.write.get(), &status.st_ino, sizeof status.st_ino) < 0) ::_exit(1);
      while (true) ::pause();
    }
    if (::read(told.read.get(), &inode_, sizeof inode_) != sizeof inode_) inode_ = 0;
  }
  Grandchild(const Grandchild&) = delete;
  Grandchild& operator=(const Grandchild&) = delete;
  ~Grandchild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] ino_t inode() const { return inode_; }

 private:
  pid_t pid_ = -1;
  ino_t inode_ = 0;
};

TEST(RunProcesses, HoldSocketsOfTheirOwnAndOurs) {
  const Grandchild grandchild(::getuid());
  const Fd own(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct stat status {};
  ASSERT_EQ(::fstat(own.get(), &status), 0);
  RunProcesses processes;
  const auto sockets = processes.sockets();
  ASSERT_TRUE(sockets);
  EXPECT_TRUE(sockets->inodes.contains(grandchild.inode()));
  EXPECT_TRUE(sockets->inodes.contains(status.st_ino));
  EXPECT_FALSE(processes.sockets()) << "it was looked a moment ago";
}

TEST(RunProcesses, MayBeOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kOther = 65533;
  RunProcesses processes;
  EXPECT_FALSE(processes.has_user(65534));
  const Grandchild grandchild(kOther);
  EXPECT_TRUE(processes.has_user(kOther)) << "that another user asked a moment ago does not matter";
  EXPECT_FALSE(processes.has_user(65534));
}

TEST(RunProcesses, AreOfAUserForAsLongAsTheyRun) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kOther = 65533;
  RunProcesses processes;
  {
    const Grandchild grandchild(kOther);
    EXPECT_TRUE(processes.has_user(kOther));
  }
  const SteadyTime limit = steady_now() + Duration(10'000);
  while (processes.has_user(kOther) && steady_now() < limit) {
  }
  EXPECT_FALSE(processes.has_user(kOther));
}

}  // namespace
}  // namespace lrun::launcher
