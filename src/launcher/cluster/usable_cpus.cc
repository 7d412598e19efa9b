// Reads how many CPUs this process may use, from its affinity mask and the quotas of its cgroups. local_host() calls
// it.
#include "cluster/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/kernel_text.h"
#include "base/split.h"
#include "cluster/system_file.h"

namespace lrun::launcher {
namespace {

/// The kernel's two files about the cgroups of this process.
struct CgroupFiles {
  std::string mountinfo;
  std::string cgroup;
};

/// The place where a cgroup hierarchy is mounted, and the directory of it that is the root of the mount.
struct CgroupMount {
  std::string point;
  std::string root;
};

/// The first cgroup mount of a kind: type 'cgroup2', or 'cgroup' with the cpu controller among its options.
std::optional<CgroupMount> find_mount(std::string_view mountinfo, std::string_view type) {
  constexpr std::string_view kSeparator = " - ";
  while (!mountinfo.empty()) {
    const std::string_view line = cut(mountinfo, '\n');
    const auto dash = line.find(" - cgroup");
    if (dash == std::string_view::npos) continue;
    std::string_view after = line.substr(dash + kSeparator.size());
    const std::string_view found_type = cut(after, ' ');
    cut(after, ' ');  // the source
    if (found_type != type || (type == "cgroup" && !has_word(after, "cpu"))) continue;
    std::string_view before = line.substr(0, dash);
    for (int field = 0; field < 3; ++field) cut(before, ' ');  // ids and the device
    const std::string_view mount_root = cut(before, ' ');
    return CgroupMount{std::string(cut(before, ' ')), std::string(mount_root)};
  }
  return std::nullopt;
}

std::optional<double> microseconds(std::string_view text) {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number <= 0) return std::nullopt;
  return static_cast<double>(number);
}

/// Quota and period as CPUs; 'max' and -1 mean no limit.
std::optional<double> limit_of(std::string_view quota_text, std::string_view period_text) {
  const auto quota = microseconds(quota_text);
  const auto period = microseconds(period_text);
  return quota && period ? std::optional(*quota / *period) : std::nullopt;
}

std::optional<double> limit_in(const std::string& directory, bool version_2) {
  if (!version_2)
    return limit_of(read_text(directory + "/cpu.cfs_quota_us"), read_text(directory + "/cpu.cfs_period_us"));
  const std::string text = read_text(directory + "/cpu.max");
  std::string_view period = text;
  const std::string_view quota = cut(period, ' ');
  return limit_of(quota, period);
}

/// The tightest limit from the process's own cgroup up to the mount's root.
std::optional<double> tightest_limit(const CgroupFiles& files, const std::string& root, bool version_2) {
  const auto mount = find_mount(files.mountinfo, version_2 ? "cgroup2" : "cgroup");
  auto path = cgroup_path(files.cgroup, version_2 ? "" : "cpu");
  if (!mount || !path) return std::nullopt;
  // In a container the mount may show only a part of the tree, while the path begins at the root of the tree.
  if (mount->root != "/" && path->starts_with(mount->root)) path->erase(0, mount->root.size());
  std::optional<double> tightest;
  while (true) {
    const std::optional<double> limit = limit_in(root + mount->point + *path, version_2);
    if (limit) tightest = std::min(*limit, tightest.value_or(*limit));
    const auto slash = path->rfind('/');
    if (slash == std::string::npos) return tightest;
    path->resize(slash);
  }
}

using AffinityMask = std::vector<cpu_set_t>;

/// A mask as long as the kernel's, which may be built for more CPUs than a cpu_set_t holds.
AffinityMask affinity_mask() {
  for (int capacity = CPU_SETSIZE;; capacity *= 2) {
    AffinityMask mask(static_cast<std::size_t>(capacity / CPU_SETSIZE));
    if (sched_getaffinity(0, mask.size() * sizeof(cpu_set_t), mask.data()) == 0) return mask;
    if (errno != EINVAL || capacity > (1 << 20)) {
      throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
    }
  }
}

}  // namespace

std::optional<double> cgroup_cpu_limit(const std::string& root) {
  const CgroupFiles files{read_text(root + "/proc/self/mountinfo"), read_text(root + "/proc/self/cgroup")};
  const std::optional<double> version_2 = tightest_limit(files, root, true);
  const std::optional<double> version_1 = tightest_limit(files, root, false);
  if (version_1 && version_2) return std::min(*version_1, *version_2);
  return version_1 ? version_1 : version_2;
}

int cpus_by_affinity() {
  const AffinityMask mask = affinity_mask();
  return CPU_COUNT_S(mask.size() * sizeof(cpu_set_t), mask.data());
}

std::vector<int> allowed_cpus() {
  const AffinityMask mask = affinity_mask();
  const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
  std::vector<int> cpus;
  for (std::size_t cpu = 0; cpu < mask.size() * CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET_S(cpu, bytes, mask.data())) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

int usable_cpus() {
  const int by_affinity = cpus_by_affinity();
  if (by_affinity <= 1) return 1;
  const std::optional<double> limit = cgroup_cpu_limit();
  if (!limit) return by_affinity;
  const double most = std::min(*limit, static_cast<double>(by_affinity));
  const int whole = static_cast<int>(most);
  return std::max(1, whole < most ? whole + 1 : whole);  // std::ceil() would need libm
}

}  // namespace lrun::launcher
