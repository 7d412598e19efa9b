#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace lrun::inline core {

/// A folder in memory for one run's workers: what they save there outlives them, but not the run.
///
/// It lives as a RunCgroup does. The workers' folder is one in a folder of ours, so that they may remove it and make it
/// again, or change its mode. Ours is locked (flock) for as long as a process lives that holds this object or a fork's
/// copy of it, so that a later run recognises that of a killed one. The destructor leaves both alone: of guard and
/// launcher the last one removes them; behind both, the waker. One thread.
class MemoryFolder {
 public:
  /// Empty.
  MemoryFolder() = default;

  /// Makes 'lrun-memory-NAME' in `parent`, 'lrun-memory-NAME-2' where that is there, for this user alone (0700), and in
  /// it the workers' folder. Abandoned ones that take the last room are removed before. Empty where it is not possible,
  /// with errno: nothing is thrown.
  static MemoryFolder make(std::string_view name, const std::string& parent = "/dev/shm");

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  /// Of our folder; -1: there is none.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Ours; empty: there is none.
  [[nodiscard]] const std::string& outer_path() const noexcept { return outer_; }
  /// The workers' folder; empty: there is none.
  [[nodiscard]] std::string path() const;
  /// Makes the workers' folder anew if somebody has removed it. \return its path; empty: ours is gone, too
  [[nodiscard]] std::string make_again() const;

  /// Removes all, also what its owner may not write; no link is followed. Without effect once it is gone, also where
  /// something else has its name since.
  void remove() const;

  /// This user has folders beside this one whose run was killed, so that no process holds their lock.
  [[nodiscard]] bool has_abandoned() const;
  /// Removes these. Gigabytes, or a million files, take seconds.
  void remove_abandoned() const;

 private:
  MemoryFolder(Fd fd, std::string outer) : fd_(std::move(fd)), outer_(std::move(outer)) {}

  Fd fd_;
  std::string outer_;  ///< ours
};

}  // namespace lrun::inline core
