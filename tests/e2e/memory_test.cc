// Ends that only the kernel can explain: memory limits and a full /dev/shm. They need the right to make a cgroup or a
// mount; where that is missing, the tests say so and skip.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

constexpr const char* kTakesTooMuch = "import os; x = bytearray(400 << 20)";

/// A cgroup of version 1 with a memory limit, made for one test.
class LimitedCgroup {
 public:
  static std::optional<LimitedCgroup> make(std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    return std::nullopt;  // lrun with AddressSanitizer would itself be what is killed
#endif
    std::string pattern = "/sys/fs/cgroup/memory/lrun-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) return std::nullopt;
    std::optional<LimitedCgroup> cgroup = LimitedCgroup(pattern);
    std::ofstream limit(pattern + "/memory.limit_in_bytes");
    limit << bytes << std::flush;
    if (!limit) return std::nullopt;
    return cgroup;
  }
  LimitedCgroup(LimitedCgroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  LimitedCgroup& operator=(LimitedCgroup&&) = delete;
  ~LimitedCgroup() {
    if (!path_.empty()) eventually([this] { return ::rmdir(path_.c_str()) == 0; }, 5s);
  }

  /// Moves the calling process into it; only async-signal-safe calls.
  void enter() const {
    const int file = ::open((path_ + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (::write(file, "0", 1) != 1) ::_exit(98);
    ::close(file);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit LimitedCgroup(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

constexpr std::size_t kLimit = std::size_t{128} << 20;

TEST(OutOfMemory, IsNamedWithTheLimitOfTheCgroup) {
  const auto cgroup = LimitedCgroup::make(kLimit);
  if (!cgroup) GTEST_SKIP() << "no cgroup of version 1 can be made here";
  LrunProcess lrun({"-n", "2", "sh", "-c", "[ $RANK = 1 ] && exec python3 -c \"$0\"; exec sleep 1000", kTakesTooMuch},
                   {.before_exec = [&] { cgroup->enter(); }});
  EXPECT_EQ(lrun.wait().code, 128 + SIGKILL);
  EXPECT_NE(lrun.err().find(" was killed by the kernel's out-of-memory killer (memory limit 128 MiB, peak memory 1"),
            std::string::npos)
      << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: hint: the host, not a GPU, is out of memory"), std::string::npos) << lrun.err();
}

TEST(OutOfMemory, OfAChildIsSeenBehindAShell) {
  const auto cgroup = LimitedCgroup::make(kLimit);
  if (!cgroup) GTEST_SKIP() << "no cgroup of version 1 can be made here";
  LrunProcess lrun({"-n", "1", "sh", "-c", "python3 -c \"$0\"; exit $?", kTakesTooMuch},
                   {.before_exec = [&] { cgroup->enter(); }});
  EXPECT_EQ(lrun.wait().code, 137);
  EXPECT_NE(lrun.err().find("the kernel's out-of-memory killer killed one of its processes (memory limit 128 MiB, "),
            std::string::npos)
      << lrun.err();
}

TEST(OutOfMemory, IsOnlyProbableWhenAnotherCgroupCountedIt) {
  const auto cgroup = LimitedCgroup::make(kLimit);
  if (!cgroup) GTEST_SKIP() << "no cgroup of version 1 can be made here";
  LrunProcess lrun(
      {"-n", "1", "sh", "-c", "echo 0 > $1/cgroup.procs && exec python3 -c \"$0\"", kTakesTooMuch, cgroup->path()});
  EXPECT_EQ(lrun.wait().code, 137);
  EXPECT_NE(lrun.err().find("was killed, probably by the kernel's out-of-memory killer"), std::string::npos)
      << lrun.err();
}

TEST(OutOfMemory, IsNotSuspectedOfAKillFromOutside) {
  LrunProcess lrun({"-n", "1", "sh", "-c", "kill -s KILL $$"});
  EXPECT_EQ(lrun.wait().code, 137);
  EXPECT_NE(lrun.err().find("died of SIGKILL (killed from outside)"), std::string::npos) << lrun.err();
  EXPECT_EQ(lrun.err().find("memory"), std::string::npos) << lrun.err();
}

/// Puts a small, full /dev/shm in place, for the calling process and its children only.
bool fill_shared_memory() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") != 0) return false;
  const int file = ::open("/dev/shm/left-over", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const char page[4096] = {};
  while (::write(file, page, sizeof page) > 0) {
  }
  return ::close(file) == 0;
}

/// Puts a small, empty file system in place of /dev/shm, for the calling process and its children only.
bool mount_small_disk() {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=256k") == 0;
}

/// Its own words about it went to the same disk.
TEST(FullDisk, IsNamedWhereAWorkerWritesItsLogItself) {
  LrunProcess lrun({"-n", "1", "--redirects", "3", "--log-dir", "/dev/shm", "sh", "-c",
                    "while echo 0123456789012345678901234567890123456789012345678901234567890123456789; do :; done; "
                    "exit 3"},
                   {.before_exec = [] {
                     if (!mount_small_disk()) ::_exit(98);
                   }});
  const LrunEnd end = lrun.wait();
  if (end.code == 98) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(end.code, 3) << lrun.err();
  EXPECT_NE(lrun.err().find(": no space is left in '/dev/shm/"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: hint: make room there"), std::string::npos) << lrun.err();
}

TEST(BusError, NamesAFullSharedMemory) {
  constexpr const char* kTouchesSharedMemory =
      "import mmap; f = open('/dev/shm/a', 'w+b'); f.truncate(65536); m = mmap.mmap(f.fileno(), 65536); m[0] = 1";
  LrunProcess lrun({"-n", "2", "sh", "-c", "ulimit -c 0; [ $RANK = 1 ] && exec python3 -c \"$0\"; exec sleep 1000",
                    kTouchesSharedMemory},
                   {.before_exec = [] {
                     if (!fill_shared_memory()) ::_exit(98);
                   }});
  const LrunEnd end = lrun.wait();
  if (end.code == 98) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(end.code, 128 + SIGBUS);
  EXPECT_NE(lrun.err().find(": /dev/shm is full (1 MiB) at <string>:1\n"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: hint: use 'docker run --shm-size=8g'"), std::string::npos) << lrun.err();
}

TEST(BusError, WithRoomInSharedMemoryIsJustABusError) {
  LrunProcess lrun({"-n", "1", "sh", "-c", "ulimit -c 0; kill -s BUS $$"});
  EXPECT_EQ(lrun.wait().code, 128 + SIGBUS);
  EXPECT_EQ(lrun.err().find("/dev/shm is full"), std::string::npos) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
