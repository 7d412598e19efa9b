#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace lrun::inline core {

/// A cgroup (version 2) of its own for the workers of one run and all that they start, where lrun may make one: below
/// its own cgroup, as in a systemd scope, in a container with its own cgroups, or as root.
///
/// It adds to the subreaper (descendants.h) an end that no walk over processes can reach: one write kills all at once,
/// also processes that fork faster than a walk, that changed their user, or whose parents both died. Needs cgroup.kill
/// (Linux 5.14). Elsewhere the object is empty, and lrun works without it.
///
/// The directory is locked (flock) for as long as a process lives that holds this object or a fork's copy of it, so
/// that a later run recognises the cgroup of a killed one. The destructor leaves the cgroup alone: of the two processes
/// that have it, the last one removes it; behind both, the waker. One thread.
class RunCgroup {
 public:
  /// Empty.
  RunCgroup() = default;

  /// Makes 'lrun-NAME' below the cgroup of this process, 'lrun-NAME-2' where that is there. Empty where that is not
  /// possible: nothing is thrown, and nothing left behind. `root` is '/' but in tests.
  static RunCgroup make(std::string_view name, const std::filesystem::path& root = "/");

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  /// Of its directory, for SpawnRequest::cgroup; -1: there is none.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Empty: there is none.
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  /// A cgroup inside of this one, which ends and goes with it; empty where that is not possible. For starting processes
  /// after a kill(): one that is born in a cgroup that was killed may die at once (Linux from 6.14 on).
  [[nodiscard]] RunCgroup inner(const std::string& name) const;

  /// SIGKILL to everything in it and below it, at once.
  void kill() const;

  /// Kills all in it and removes it, with the cgroups below it. Without effect once it is gone, also where another
  /// launcher has made one of its name since. A process that the kernel holds keeps the directory, too.
  void remove() const;

  /// The same for cgroups beside this one whose run was killed, so that no process holds their lock. Processes that do
  /// not end at once are left to a later run.
  void remove_abandoned() const;

 private:
  RunCgroup(Fd fd, std::filesystem::path folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}

  Fd fd_;
  std::filesystem::path folder_;
};

/// RunCgroup::kill() for a signal handler. `folder`: RunCgroup::fd().
void kill_cgroup(int folder) noexcept;

}  // namespace lrun::inline core
