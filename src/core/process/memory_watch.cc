// In: counters of the kernel, before and after a death. Out: whether processes were killed for lack of memory. Called
// by the launcher for a worker that died of SIGKILL.
#include "process/memory_watch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/kernel_text.h"
#include "base/small_file.h"

namespace lrun::inline core {
namespace {

/// More than the kernel writes into any file that is read here.
constexpr std::size_t kMostFileBytes = 64 * 1024;

std::string read_all(const std::filesystem::path& file) { return read_small_file(file, kMostFileBytes).value_or(""); }

/// cgroup 1 has the greatest number of pages for 'no limit'.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;

}  // namespace

MemoryWatch::MemoryWatch(const std::filesystem::path& own_cgroup, std::filesystem::path root) : root_(std::move(root)) {
  const std::optional<std::uint64_t> own =
      own_cgroup.empty() ? std::nullopt : counter_named(read_all(own_cgroup / "memory.events"), "oom_kill");
  if (own) {
    folder_ = own_cgroup;
    mount_point_ = root_;  // no directory above the mount point has files of this kind
    version_2_ = true;
    cgroup_seen_ = *own;
  } else {
    find_folder();
  }
  machine_seen_ = machine_count();
}

void MemoryWatch::find_folder() {
  const std::string membership = read_all(root_ / "proc/self/cgroup");
  struct Place {
    const char* mount_point;
    const char* controller;
    const char* file;
    bool version_2;
  };
  for (const Place& place : {Place{"sys/fs/cgroup", "", "memory.events", true},
                             Place{"sys/fs/cgroup/memory", "memory", "memory.oom_control", false}}) {
    const auto path = cgroup_path(membership, place.controller);
    if (!path) continue;
    const std::filesystem::path mount_point = root_ / place.mount_point;
    // In a container without a namespace of its own the path is the host's, and the cgroup itself is mounted.
    for (const auto& folder : {mount_point / std::filesystem::path(*path).relative_path(), mount_point}) {
      if (!folder_.empty()) continue;
      const std::optional<std::uint64_t> count = counter_named(read_all(folder / place.file), "oom_kill");
      if (!count) continue;
      cgroup_seen_ = *count;
      folder_ = folder;
      mount_point_ = mount_point;
      version_2_ = place.version_2;
    }
    if (!folder_.empty()) break;
  }
}

std::uint64_t MemoryWatch::cgroup_count() const {
  if (folder_.empty()) return 0;
  const char* const file = version_2_ ? "memory.events" : "memory.oom_control";
  return counter_named(read_all(folder_ / file), "oom_kill").value_or(0);
}

/// cgroup 2 counts for all its descendants: there the machine's counter, which is costly on many processors, adds
/// nothing.
std::uint64_t MemoryWatch::machine_count() const {
  if (!folder_.empty() && version_2_) return 0;
  return counter_named(read_all(root_ / "proc/vmstat"), "oom_kill").value_or(0);
}

std::uint64_t MemoryWatch::limit() const {
  std::uint64_t lowest = kNoLimit;
  const char* const file = version_2_ ? "memory.max" : "memory.limit_in_bytes";
  for (std::filesystem::path folder = folder_;; folder = folder.parent_path()) {
    lowest = std::min(lowest, number_in(read_all(folder / file)).value_or(kNoLimit));
    if (folder == mount_point_ || folder == folder.parent_path()) break;
  }
  return lowest == kNoLimit ? 0 : lowest;
}

MemoryKills MemoryWatch::take() {
  const std::uint64_t in_cgroup = cgroup_count();
  const std::uint64_t on_machine = machine_count();
  MemoryKills kills;
  kills.in_cgroup = in_cgroup > cgroup_seen_;
  const std::uint64_t more =
      kills.in_cgroup ? in_cgroup - cgroup_seen_ : on_machine - std::min(on_machine, machine_seen_);
  kills.count = static_cast<int>(std::min<std::uint64_t>(more, 1'000'000));
  if (kills.count == 0) return kills;
  if (kills.in_cgroup) {
    kills.limit_bytes = limit();
    ++cgroup_seen_;
  }
  ++machine_seen_;  // it counts those of the cgroup, too
  return kills;
}

}  // namespace lrun::inline core
