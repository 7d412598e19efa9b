#include "process/memory_watch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/kernel_text.h"

namespace lrun {
namespace {

constexpr std::string_view kMembership =
    "12:cpu,cpuacct:/a\n"
    "9:memory:/user/job\n"
    "0::/user/session\n";

TEST(CgroupPath, IsFoundByController) {
  EXPECT_EQ(cgroup_path(kMembership, "memory"), "/user/job");
  EXPECT_EQ(cgroup_path(kMembership, "cpuacct"), "/a");
  EXPECT_EQ(cgroup_path(kMembership, ""), "/user/session");
  EXPECT_EQ(cgroup_path(kMembership, "mem"), std::nullopt);
  EXPECT_EQ(cgroup_path("", "memory"), std::nullopt);
  EXPECT_EQ(cgroup_path("::\n:\nx", "memory"), std::nullopt);
}

TEST(CounterNamed, IsTheNumberOfThatNameOnly) {
  EXPECT_EQ(counter_named("oom 7\noom_kill 3\noom_group_kill 1\n", "oom_kill"), 3U);
  EXPECT_EQ(counter_named("oom_kill_disable 0\nunder_oom 0\n", "oom_kill"), std::nullopt);
  EXPECT_EQ(counter_named("oom_kill", "oom_kill"), std::nullopt);
  EXPECT_EQ(counter_named("oom_kill x", "oom_kill"), std::nullopt);
  EXPECT_EQ(counter_named("MemFree:  1 kB\nMemAvailable:   24 kB\n", "MemAvailable:"), 24U);
  EXPECT_EQ(counter_named("oom_kill  ", "oom_kill"), std::nullopt);
}

/// A root folder with the files that the kernel would have.
class FakeKernel {
 public:
  FakeKernel() {
    std::string pattern = ::testing::TempDir() + "lrun-memory-watch-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    write("proc/self/cgroup", kMembership);
    write("proc/vmstat", "pgfault 1\noom_kill 10\n");
  }
  ~FakeKernel() { std::filesystem::remove_all(root_); }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  void write(const std::filesystem::path& file, std::string_view text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

TEST(MemoryWatch, CountsTheKillsOfItsCgroupAndKnowsTheLimit) {
  const FakeKernel kernel;
  kernel.write("sys/fs/cgroup/user/session/memory.events", "oom 0\noom_kill 4\n");
  kernel.write("sys/fs/cgroup/user/session/memory.max", "max\n");
  kernel.write("sys/fs/cgroup/user/memory.max", "67108864\n");
  MemoryWatch watch({}, kernel.root());
  EXPECT_EQ(watch.take(), MemoryKills{});
  kernel.write("sys/fs/cgroup/user/session/memory.events", "oom 2\noom_kill 6\n");
  EXPECT_EQ(watch.take(), (MemoryKills{2, true, 64 << 20}));
  EXPECT_EQ(watch.take(), (MemoryKills{1, true, 64 << 20})) << "one is taken by each death";
  EXPECT_EQ(watch.take(), MemoryKills{});
}

TEST(MemoryWatch, PrefersTheCgroupOfTheWorkersAlone) {
  const FakeKernel kernel;
  kernel.write("sys/fs/cgroup/user/session/memory.events", "oom_kill 0\n");
  kernel.write("sys/fs/cgroup/user/memory.max", "1048576\n");
  const std::filesystem::path own = kernel.root() / "sys/fs/cgroup/user/session/lrun-x";
  kernel.write(own / "memory.events", "oom_kill 0\n");
  MemoryWatch watch(own, kernel.root());
  kernel.write("sys/fs/cgroup/user/session/memory.events", "oom_kill 1\n");
  EXPECT_EQ(watch.take(), MemoryKills{}) << "somebody else's, in the same session";
  kernel.write(own / "memory.events", "oom_kill 1\n");
  EXPECT_EQ(watch.take(), (MemoryKills{1, true, 1 << 20}));
}

TEST(MemoryWatch, LooksElsewhereWhereTheOwnCgroupDoesNotCount) {
  const FakeKernel kernel;
  kernel.write("sys/fs/cgroup/user/session/memory.events", "oom_kill 0\n");
  MemoryWatch watch(kernel.root() / "sys/fs/cgroup/user/session/lrun-x", kernel.root());
  kernel.write("sys/fs/cgroup/user/session/memory.events", "oom_kill 1\n");
  EXPECT_EQ(watch.take(), (MemoryKills{1, true, 0}));
}

TEST(MemoryWatch, ReadsVersionOneOfCgroupsToo) {
  const FakeKernel kernel;
  kernel.write("sys/fs/cgroup/memory/user/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  kernel.write("sys/fs/cgroup/memory/user/job/memory.limit_in_bytes", "9223372036854771712\n");
  MemoryWatch watch({}, kernel.root());
  kernel.write("sys/fs/cgroup/memory/user/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  kernel.write("proc/vmstat", "oom_kill 11\n");
  EXPECT_EQ(watch.take(), (MemoryKills{1, true, 0}));
  EXPECT_EQ(watch.take(), MemoryKills{}) << "the machine counted the same kill";
}

TEST(MemoryWatch, FindsTheCgroupOfAContainerAtTheMountPoint) {
  const FakeKernel kernel;
  kernel.write("sys/fs/cgroup/memory.events", "oom_kill 0\n");
  kernel.write("sys/fs/cgroup/memory.max", "1048576\n");
  MemoryWatch watch({}, kernel.root());
  kernel.write("sys/fs/cgroup/memory.events", "oom_kill 1\n");
  EXPECT_EQ(watch.take(), (MemoryKills{1, true, 1 << 20}));
}

TEST(MemoryWatch, FallsBackOnTheMachinesCounter) {
  const FakeKernel kernel;
  MemoryWatch watch({}, kernel.root());
  kernel.write("proc/vmstat", "oom_kill 11\n");
  EXPECT_EQ(watch.take(), (MemoryKills{1, false, 0}));
  EXPECT_EQ(watch.take(), MemoryKills{});
}

TEST(MemoryWatch, CountsNothingWhereNothingCanBeRead) {
  MemoryWatch watch({}, "/nonexistent");
  EXPECT_EQ(watch.take(), MemoryKills{});
}

}  // namespace
}  // namespace lrun
