#include "inspect/native_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/child_query.h"
#include "inspect/process_look.h"

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A process that a test looks at.
class LookedAt {
 public:
  explicit LookedAt(const std::function<void()>& run) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // Yama may let only ancestors look
      run();
      ::_exit(0);
    }
  }
  LookedAt(const LookedAt&) = delete;
  LookedAt& operator=(const LookedAt&) = delete;
  ~LookedAt() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void wait_until(char state) const {
    while (look_at_process(pid_).state != state) ::usleep(1000);
  }

 private:
  pid_t pid_;
};

/// In a child: one that does not stop in time stays traced as long as its tracer lives.
NativeLook look_at(pid_t pid) {
  const ChildAnswer answer = query_in_child([pid] { return to_text(look_at_native(pid)); }, Duration(20'000));
  EXPECT_EQ(answer.end, ChildAnswer::End::kAnswered);
  return native_look_from(answer.text);
}

std::vector<std::string> functions_of(const NativeLook& look) {
  std::vector<std::string> names;
  for (const StackFrame& frame : look.frames) names.push_back(frame.function);
  return names;
}

/// It may take a moment until a process is there.
bool is_seen_with(pid_t pid, const std::string& problem) {
  for (int i = 0; i < 1000; ++i) {
    if (look_at(pid).problem == problem) return true;
    ::usleep(1000);
  }
  return false;
}

struct Trainer {
  std::mutex mutex;
  void step(int number);
};

__attribute__((noinline, noclone, optimize("O1"))) void Trainer::step(int number) {
  if (number > 0) {
    step(number - 1);
  } else {
    mutex.lock();
  }
  asm volatile("");
}

void wait_for_ever() {
  Trainer trainer;
  trainer.mutex.lock();
  trainer.step(3);
}

TEST(NativeLook, NamesTheCallsOfAThreadThatWaits) {
  const LookedAt child(wait_for_ever);
  child.wait_until('S');
  const NativeLook look = look_at(child.pid());
  EXPECT_EQ(look.problem, "");
  const std::vector<std::string> functions = functions_of(look);
  EXPECT_EQ(std::count_if(functions.begin(), functions.end(),
                          [](const std::string& name) { return name.find("Trainer::step(int)") != std::string::npos; }),
            4);
  EXPECT_THAT(functions, Contains("main"));
  EXPECT_THAT(look.frames.at(0).place, StartsWith("libc.so"));
  EXPECT_EQ(look_at_process(child.pid()).state, 'S') << "it goes on";
}

TEST(NativeLook, NamesTheCallsOfAThreadThatRuns) {
  const LookedAt child([] {
    for (volatile int i = 0;;) i = i + 1;
  });
  // On a busy machine it may wait for a processor too long to be stopped; what is seen has to be right.
  int seen = 0;
  std::string problem;
  for (int i = 0; i < 100; ++i) {
    const NativeLook look = look_at(child.pid());
    if (look.frames.empty()) {
      problem = look.problem;
      continue;
    }
    ++seen;
    EXPECT_THAT(functions_of(look), Contains("main")) << look.problem;
  }
  EXPECT_GE(seen, 50) << problem;
}

TEST(NativeLook, LeavesAStoppedProcessStopped) {
  const LookedAt child(wait_for_ever);
  child.wait_until('S');
  ::kill(child.pid(), SIGSTOP);
  child.wait_until('T');
  EXPECT_THAT(functions_of(look_at(child.pid())), Contains("main"));
  child.wait_until('T');
}

/// Each signal is counted, and many come in the moment of a look.
TEST(NativeLook, LosesNoSignal) {
  struct Counts {
    std::atomic<int> sent{-1};
    std::atomic<int> handled{-1};
  };
  static Counts* counts = nullptr;
  void* const shared = ::mmap(nullptr, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  counts = new (shared) Counts;
  const LookedAt child([] {
    ::signal(SIGRTMIN, [](int) { ++counts->handled; });
    counts->handled = 0;
    while (true) ::pause();
  });
  while (counts->handled < 0) ::usleep(100);
  const LookedAt sender([pid = child.pid()] {
    for (counts->sent = 0;; ::usleep(20)) {
      if (::sigqueue(pid, SIGRTMIN, {}) == 0) ++counts->sent;  // it is refused where too many wait
    }
  });
  for (int i = 0; i < 100; ++i) EXPECT_THAT(functions_of(look_at(child.pid())), Contains("main"));
  ::kill(sender.pid(), SIGSTOP);
  sender.wait_until('T');
  // One may be sent and not be counted. The test's limit ends it where one is lost.
  while (counts->handled < counts->sent) ::usleep(100);
  EXPECT_LE(counts->handled, counts->sent + 1);
  ::munmap(shared, sizeof *counts);
}

struct Wait {
  std::string call;
  std::function<void(int socket)> run;
};

/// These end with EINTR where a process is stopped and goes on.
const std::vector<Wait>& waits() {
  static const std::vector<Wait> kWaits{
      {"epoll_wait",
       [](int) {
         epoll_event event{};
         ::epoll_wait(::epoll_create1(0), &event, 1, -1);
       }},
      {"sigwait",
       [](int) {
         sigset_t signals;
         ::sigemptyset(&signals);
         ::sigaddset(&signals, SIGUSR1);
         ::sigprocmask(SIG_BLOCK, &signals, nullptr);
         ::sigwaitinfo(&signals, nullptr);
       }},
      {"recv",
       [](int socket) {
         const timeval limit{1000, 0};
         ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
         char byte = 0;
         ::recv(socket, &byte, 1, 0);
       }},
  };
  return kWaits;
}

TEST(NativeLook, EndsNoCallOfTheProcess) {
  for (const Wait& wait : waits()) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const LookedAt child([&] { wait.run(ends[1]); });
    while (look_at_process(child.pid()).system_call != wait.call) ::usleep(1000);
    for (int i = 0; i < 20; ++i) EXPECT_THAT(functions_of(look_at(child.pid())), Contains("main")) << wait.call;
    const StackSample now = look_at_process(child.pid());
    EXPECT_EQ(now.state, 'S') << wait.call;
    EXPECT_EQ(now.system_call, wait.call);
    if (wait.call == "recv") {
      EXPECT_EQ(::send(ends[0], "x", 1, 0), 1);
      child.wait_until('Z');  // it works still
    }
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

TEST(NativeLook, KnowsAProgramThatHasBeenRemoved) {
  const std::string program = ::testing::TempDir() + "removed-" + std::to_string(::getpid());
  std::filesystem::copy_file("/bin/sleep", program);
  const LookedAt child([&] { ::execl(program.c_str(), program.c_str(), "1000", nullptr); });
  while (look_at_process(child.pid()).system_call != "clock_nanosleep") ::usleep(1000);
  std::filesystem::remove(program);
  const NativeLook look = look_at(child.pid());
  EXPECT_EQ(look.problem, "");
  EXPECT_THAT(functions_of(look), Contains("__libc_start_main"));
}

TEST(NativeLook, SaysThatCodeIsInNoFile) {
  const LookedAt child([] {
    void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    constexpr unsigned char kLoop[] = {0xEB, 0xFE};  // jumps to itself
    std::memcpy(code, kLoop, sizeof kLoop);
    reinterpret_cast<void (*)()>(code)();
  });
  EXPECT_TRUE(is_seen_with(child.pid(), "no native stack: its code is in no file, as that of a just-in-time compiler"));
}

/// The end of its stack is behind what is copied.
TEST(NativeLook, SaysThatAStackIsLongerThanItsCopy) {
  const LookedAt child([] {
    volatile char large[2 << 20];
    large[0] = 1;
    while (large[0] == 1) ::pause();
  });
  child.wait_until('S');
  const NativeLook look = look_at(child.pid());
  EXPECT_EQ(look.problem, "its native stack is cut off: the rest of its stack is elsewhere, or beyond 1 MiB");
  EXPECT_EQ(functions_of(look).front(), "pause");
}

TEST(NativeLook, SaysWhoTracesAProcess) {
  const LookedAt child([] {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
  });
  child.wait_until('t');
  EXPECT_THAT(look_at(child.pid()).problem,
              AllOf(StartsWith("no native stack: it is traced already, by "), HasSubstr(std::to_string(::getpid()))));
}

TEST(NativeLook, SaysThatAProcessHasEnded) {
  const LookedAt child([] {});
  child.wait_until('Z');
  EXPECT_EQ(look_at(child.pid()).problem, "no native stack: it has ended");
}

}  // namespace
}  // namespace lrun::launcher
