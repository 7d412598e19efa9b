#include "cluster/usable_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

/// A root directory with the files that a container or a batch system would show.
class CgroupCpuLimit : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text << '\n';
  }
  [[nodiscard]] std::optional<double> limit() const { return cgroup_cpu_limit(root_); }

  static constexpr const char* kVersion2 = "31 23 0:28 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
  static constexpr const char* kVersion1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";

 private:
  const test::TemporaryFolder temporary_;
  const std::string root_ = temporary_.path().string();
};

TEST_F(CgroupCpuLimit, IsAbsentWithoutCgroups) { EXPECT_EQ(limit(), std::nullopt); }

TEST_F(CgroupCpuLimit, IsTheTightestOfAllLevels) {
  write("/proc/self/mountinfo", kVersion2);
  write("/proc/self/cgroup", "0::/jobs/7");
  write("/sys/fs/cgroup/jobs/7/cpu.max", "max 100000");
  write("/sys/fs/cgroup/jobs/cpu.max", "150000 100000");
  EXPECT_EQ(limit(), 1.5);
  write("/sys/fs/cgroup/jobs/7/cpu.max", "50000 100000");
  EXPECT_EQ(limit(), 0.5);
}

TEST_F(CgroupCpuLimit, IsReadFromVersion1) {
  write("/proc/self/mountinfo", kVersion1);
  write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n0::/");
  write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "400000");
  write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limit(), 4.0);
  write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(limit(), std::nullopt);
}

TEST_F(CgroupCpuLimit, IsFoundWhereAContainerSeesOnlyItsPartOfTheTree) {
  write("/proc/self/mountinfo", "40 31 0:29 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw");
  write("/proc/self/cgroup", "0::/docker/abc");
  write("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(limit(), 2.0);
}

TEST_F(CgroupCpuLimit, IsTheTighterOfBothVersionsSideBySide) {
  write("/proc/self/mountinfo", std::string(kVersion1) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  write("/proc/self/cgroup", "1:cpu:/\n0::/");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  write("/sys/fs/cgroup/unified/cpu.max", "200000 100000");
  EXPECT_EQ(limit(), 2.0);
}

TEST_F(CgroupCpuLimit, IsAbsentIfAFileCannotBeRead) {
  write("/proc/self/mountinfo", kVersion2);
  write("/proc/self/cgroup", "0::/x");
  write("/sys/fs/cgroup/x/cpu.max", "nonsense");
  EXPECT_EQ(limit(), std::nullopt);
}

TEST(CpusByAffinity, FollowTheMaskOfThisThread) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(cpus_by_affinity(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int narrowed = cpus_by_affinity();
  const int usable = usable_cpus();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(narrowed, 1);
  EXPECT_EQ(usable, 1);
}

}  // namespace
}  // namespace lrun::launcher
