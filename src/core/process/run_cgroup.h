#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace lrun::inline core {

/// A cgroup (version 2) of its own for the workers of one run and all that they start, where lrun may make one: below
/// its own cgroup, as in a systemd scope, in a container with its own cgroups, or as root.
///
/// It adds to the subreaper (descendants.h) what a walk over processes cannot do: one write ends all at once, also
/// those that fork faster than anybody can look, that changed their user, or whose parents both died. Needs cgroup.kill
/// (Linux 5.14); elsewhere there is none, and everything works without it.
///
/// The directory is locked (flock) for as long as a process lives that holds this object or a fork's copy of it, so
/// that a later run can tell what a killed one left behind. The destructor leaves the cgroup alone: of the two
/// processes that have it, the last one removes it. One thread.
class RunCgroup {
 public:
  /// None.
  RunCgroup() = default;

  /// Makes 'lrun-NAME' below the cgroup of this process; none where that cannot be. `root` is '/' but in tests. Nothing
  /// is thrown, and nothing left behind.
  static RunCgroup make(std::string_view name, const std::filesystem::path& root = "/");

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  /// Of its directory, for SpawnRequest::cgroup; -1: there is none.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Empty: there is none.
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  /// A cgroup inside of this one, which ends and goes with it; none where that cannot be. To start something new after
  /// a kill(): what is born in a cgroup that was killed may die at once (Linux from 6.14 on).
  [[nodiscard]] RunCgroup inner(const std::string& name) const;

  /// SIGKILL to everything in it and below it, at once.
  void kill() const;

  /// Ends what is in it and removes it, with those below it. Without effect once it is gone. What the kernel keeps from
  /// ending keeps the directory, too.
  void remove() const;

  /// The same for those beside this one whose run was killed without mercy: nobody holds their lock. What does not end
  /// at once is left to a later run.
  void remove_abandoned() const;

 private:
  RunCgroup(Fd fd, std::filesystem::path folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}

  Fd fd_;
  std::filesystem::path folder_;
};

/// What RunCgroup::kill() does, for a signal handler. `folder`: RunCgroup::fd().
void kill_cgroup(int folder) noexcept;

}  // namespace lrun::inline core
