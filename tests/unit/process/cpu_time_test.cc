#include "process/cpu_time.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

namespace lrun {
namespace {

constexpr auto kSignaled = ExitStatus::Kind::kSignaled;

/// A child that has ended and is not reaped, having used its limit up or not.
class Ended {
 public:
  Ended(rlim_t soft, rlim_t hard, bool burns) : pid_(::fork()) {
    if (pid_ == 0) {
      const rlimit limit{soft, hard};
      ::setrlimit(RLIMIT_CPU, &limit);
      if (!burns) ::raise(SIGKILL);
      while (::clock() >= 0) continue;
    }
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    ending_ = ExitStatus::from_siginfo(info);
  }
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;
  ~Ended() { ::waitpid(pid_, nullptr, 0); }

  [[nodiscard]] int signal() const { return ending_.value; }
  [[nodiscard]] std::uint64_t limit_used_up() const { return cpu_limit_used_up(pid_, ending_); }

 private:
  pid_t pid_;
  ExitStatus ending_;
};

/// Of one of five children: on a busy machine the kernel may count far more ticks than a child has used.
bool knows_limit_of_a_second(rlim_t hard, int signal) {
  for (int child = 0; child < 5; ++child) {
    const Ended ended(1, hard, true);
    EXPECT_EQ(ended.signal(), signal);
    if (ended.limit_used_up() == 1U) return true;
  }
  return false;
}

TEST(CpuLimit, ThatWasUsedUpIsKnown) {
  EXPECT_TRUE(knows_limit_of_a_second(1, SIGKILL));
  EXPECT_TRUE(knows_limit_of_a_second(RLIM_INFINITY, SIGXCPU));
}

TEST(CpuLimit, IsNotWhatAnotherKillWasFor) {
  EXPECT_EQ(Ended(1000, 1000, false).limit_used_up(), 0U);
  EXPECT_EQ(Ended(RLIM_INFINITY, RLIM_INFINITY, false).limit_used_up(), 0U);
  EXPECT_EQ(cpu_limit_used_up(::getpid(), {kSignaled, SIGSEGV, false}), 0U);
}

TEST(CpuLimit, IsReadFromWhatTheKernelSays) {
  constexpr const char* kText =
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max cpu time              10                   20                   seconds   \n"
      "Max file size             unlimited            unlimited            bytes     \n";
  EXPECT_EQ(parse_cpu_limits(kText), (CpuLimits{10, 20}));
  EXPECT_EQ(parse_cpu_limits("Max cpu time  30  unlimited  seconds\n"), (CpuLimits{30, 0}));
  EXPECT_EQ(parse_cpu_limits("Max cpu time"), CpuLimits{});
  EXPECT_EQ(parse_cpu_limits(""), CpuLimits{});
}

}  // namespace
}  // namespace lrun
