#include "runtime/session/crash_report.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

namespace lrun::detail {
namespace {

struct End {
  std::string said;  ///< on stderr
  int signal_number = 0;
};

/// The end of a child that does this after report_faults().
End end_of(const std::function<void()>& act) {
  int pipe[2] = {-1, -1};
  EXPECT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::dup2(pipe[1], STDERR_FILENO);
    report_faults();
    act();
    ::_exit(0);
  }
  ::close(pipe[1]);
  End end;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(pipe[0], buffer, sizeof buffer)) > 0;) {
    end.said.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(pipe[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) end.signal_number = WTERMSIG(status);
  return end;
}

/// Not known to the compiler.
template <class Pointer>
Pointer pointer_to(const char* address) {
  return std::bit_cast<Pointer>(std::strtoul(address, nullptr, 16));
}

[[gnu::noinline]] void write_to(volatile int* place) { *place = 1; }

[[gnu::noinline]] int use_up_the_stack(int depth) {
  volatile char room[1000];
  room[0] = static_cast<char>(depth);
  return depth < 1'000'000'000 ? use_up_the_stack(depth + 1) + room[0] : 0;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

/// How far behind the beginning of a function the offset in 'FILE+0x1234\n' is.
std::uintptr_t distance_from(void (*function)(volatile int*), const std::string& said) {
  Dl_info info{};
  EXPECT_NE(::dladdr(std::bit_cast<const void*>(function), &info), 0);
  return std::strtoul(said.c_str() + said.rfind('+') + 1, nullptr, 16) -
         (std::bit_cast<std::uintptr_t>(function) - std::bit_cast<std::uintptr_t>(info.dli_fbase));
}

class CrashReport : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer handles faults itself";
#endif
  }
};

TEST_F(CrashReport, SaysWhichAddressAndWhereAndTheProcessEndsOfTheFault) {
  const End end = end_of([] { write_to(pointer_to<int*>("10")); });
  EXPECT_EQ(end.signal_number, SIGSEGV);
  EXPECT_EQ(end.said.find("lrun: SIGSEGV at address 0x10 in " + own_program() + "+0x"), 0U) << end.said;
  EXPECT_LT(distance_from(write_to, end.said), 64U) << "as addr2line counts: " << end.said;
  EXPECT_EQ(end.said.find('\n'), end.said.size() - 1) << "one line: " << end.said;
}

TEST_F(CrashReport, NamesTheProgramsOwnCallOfALibrary) {
  const End end = end_of([] { std::memset(pointer_to<void*>("10"), 1, 100'000); });
  EXPECT_EQ(end.signal_number, SIGSEGV);
  EXPECT_NE(end.said.find(", called from " + own_program() + "+0x"), std::string::npos) << end.said;
}

TEST_F(CrashReport, TakesNoInstalledPackageForTheProgramsOwn) {
  void* const package = ::dlopen(LRUN_TEST_PACKAGE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(package, nullptr) << ::dlerror();
  const auto write = std::bit_cast<void (*)(volatile int*)>(::dlsym(package, "lrun_test_write"));
  ASSERT_NE(write, nullptr);
  const End end = end_of([&] { write(pointer_to<int*>("10")); });
  EXPECT_EQ(end.signal_number, SIGSEGV);
  EXPECT_NE(end.said.find("/site-packages/"), std::string::npos) << end.said;
  EXPECT_NE(end.said.find(", called from " + own_program() + "+0x"), std::string::npos) << end.said;
}

TEST_F(CrashReport, NamesWhoeverCallsNothing) {
  const End end = end_of([] { pointer_to<void (*)()>("0")(); });
  EXPECT_EQ(end.signal_number, SIGSEGV);
  EXPECT_NE(end.said.find(" in unknown code 0x0, called from " + own_program() + "+0x"), std::string::npos) << end.said;
}

TEST_F(CrashReport, NeedsNoRoomOnTheStack) {
  const End end = end_of([] { ::_exit(use_up_the_stack(0)); });
  EXPECT_EQ(end.signal_number, SIGSEGV);
  EXPECT_NE(end.said.find(" in " + own_program() + "+0x"), std::string::npos) << end.said;
}

TEST_F(CrashReport, IsNotMadeOfASignalThatSomebodySends) {
  const End end = end_of([] { ::kill(::getpid(), SIGSEGV); });
  EXPECT_EQ(end.signal_number, SIGSEGV);
  EXPECT_EQ(end.said, "");
}

void own_handler(int) { ::_exit(0); }

TEST_F(CrashReport, LeavesToTheProgramWhatItHandlesItself) {
  ::signal(SIGFPE, own_handler);
  const End end = end_of([] { ::raise(SIGFPE); });
  ::signal(SIGFPE, SIG_DFL);
  EXPECT_EQ(end.signal_number, 0);
  EXPECT_EQ(end.said, "");
}

}  // namespace
}  // namespace lrun::detail
