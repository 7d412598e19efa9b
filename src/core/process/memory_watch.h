#pragma once

#include <cstdint>
#include <filesystem>

namespace lrun::inline core {

/// The processes that the kernel killed for lack of memory.
struct MemoryKills {
  int count = 0;                  ///< since the watch began or the last one was taken
  bool in_cgroup = false;         ///< counted in the cgroup of the run; false: anywhere on the machine
  std::uint64_t limit_bytes = 0;  ///< the lowest memory limit that holds for that cgroup; 0: none, or not known

  bool operator==(const MemoryKills&) const = default;
};

/// Tells an out-of-memory kill from any other SIGKILL. Only the parent of a killed process can, and only by counters
/// that it has read before: those of the children's own cgroup, or of the one that this process and its children live
/// in (cgroup 2 memory.events, cgroup 1 memory.oom_control), or /proc/vmstat of the whole machine. One thread.
class MemoryWatch {
 public:
  /// Reads the counters. `own_cgroup` is the folder of the cgroup (version 2) that the children alone live in; empty:
  /// there is none. It counts where the memory controller is on. `root` is '/' but in tests. Never throws for a file
  /// that cannot be read.
  explicit MemoryWatch(const std::filesystem::path& own_cgroup = {}, std::filesystem::path root = "/");

  /// The kills since the last call. To be asked about a death by SIGKILL that lrun has not sent. One kill counts as
  /// taken, so that the next death needs another one.
  MemoryKills take();

  /// The lowest memory limit that holds for the children, in bytes; 0: none, or not known.
  [[nodiscard]] std::uint64_t limit() const;

 private:
  void find_folder();  ///< and reads its counter
  [[nodiscard]] std::uint64_t cgroup_count() const;
  [[nodiscard]] std::uint64_t machine_count() const;

  std::filesystem::path root_;
  std::filesystem::path folder_;       ///< of the cgroup that counts; empty: none does
  std::filesystem::path mount_point_;  ///< where its ancestors end
  bool version_2_ = false;
  std::uint64_t cgroup_seen_ = 0;
  std::uint64_t machine_seen_ = 0;
};

}  // namespace lrun::inline core
