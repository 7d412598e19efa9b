#include "cluster/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace lrun {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::optional<std::string> first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

/// What the kernel says about the cgroups of this process. Read once: this is on the way of every start.
struct CgroupFiles {
  std::vector<std::string> mountinfo;
  std::vector<std::string> cgroup;
};

/// Where a cgroup hierarchy is mounted, and which of its directories is the mount's root.
struct CgroupMount {
  std::string point;
  std::string root;
};

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

/// The first cgroup mount of a kind: type 'cgroup2', or 'cgroup' with the cpu controller among its options.
std::optional<CgroupMount> find_mount(const std::vector<std::string>& mountinfo, std::string_view type) {
  for (const std::string& line : mountinfo) {
    const auto dash = line.find(" - cgroup");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string id, parent, device, found_type, source, options;
    CgroupMount mount;
    before >> id >> parent >> device >> mount.root >> mount.point;
    after >> found_type >> source >> options;
    if (found_type == type && (type == "cgroup2" || has_word(options, "cpu"))) return mount;
  }
  return std::nullopt;
}

/// This process's directory in the v2 hierarchy (`controller` empty), or in the v1 hierarchy of a controller.
std::optional<std::string> own_cgroup(const std::vector<std::string>& proc_cgroup, std::string_view controller) {
  for (const std::string& line : proc_cgroup) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool found = controller.empty() ? controllers.empty() : has_word(controllers, controller);
    if (found) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// 'quota period' in microseconds as CPUs; 'max' and -1 mean no limit.
std::optional<double> limit_of(const std::string& quota_and_period) {
  std::istringstream words(quota_and_period);
  double quota = 0;
  double period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> limit_in(const std::string& directory, bool version_2) {
  if (version_2) return limit_of(first_line_of(directory + "/cpu.max").value_or(""));
  const std::optional<std::string> quota = first_line_of(directory + "/cpu.cfs_quota_us");
  if (!quota) return std::nullopt;
  return limit_of(*quota + " " + first_line_of(directory + "/cpu.cfs_period_us").value_or(""));
}

/// The tightest limit from the process's own cgroup up to the mount's root.
std::optional<double> tightest_limit(const CgroupFiles& files, const std::string& root, bool version_2) {
  const auto mount = find_mount(files.mountinfo, version_2 ? "cgroup2" : "cgroup");
  auto path = own_cgroup(files.cgroup, version_2 ? "" : "cpu");
  if (!mount || !path) return std::nullopt;
  // In a container the mount may show a part of the tree only; the path is given from the tree's root.
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

}  // namespace

std::optional<double> cgroup_cpu_limit(const std::string& root) {
  const CgroupFiles files{lines_of(root + "/proc/self/mountinfo"), lines_of(root + "/proc/self/cgroup")};
  const std::optional<double> version_2 = tightest_limit(files, root, true);
  const std::optional<double> version_1 = tightest_limit(files, root, false);
  if (version_1 && version_2) return std::min(*version_1, *version_2);
  return version_1 ? version_1 : version_2;
}

int cpus_by_affinity() {
  // The mask must be as long as the kernel's, which may be built for more CPUs than a cpu_set_t holds.
  for (int capacity = CPU_SETSIZE;; capacity *= 2) {
    std::vector<cpu_set_t> mask(static_cast<std::size_t>(capacity / CPU_SETSIZE));
    const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) return CPU_COUNT_S(bytes, mask.data());
    if (errno != EINVAL || capacity > (1 << 20)) {
      throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
    }
  }
}

int usable_cpus() {
  const int by_affinity = cpus_by_affinity();
  if (by_affinity <= 1) return 1;
  const std::optional<double> limit = cgroup_cpu_limit();
  if (!limit) return by_affinity;
  const double whole = std::ceil(std::min(*limit, static_cast<double>(by_affinity)));
  return std::max(1, static_cast<int>(whole));
}

}  // namespace lrun
