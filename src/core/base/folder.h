#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace lrun::inline core {

/// A folder that is held open. Files in it are reached through its descriptor and never through a link: a link in the
/// way, or another folder in the place of this one, leads no write to another place.
///
/// Folders that it makes are their owner's alone, 0700, whatever the umask; it changes the process's umask for that
/// moment, so that only a process of one thread may make any.
class Folder {
 public:
  /// Empty.
  Folder() = default;

  /// A path of the user's, in which links are followed.
  /// \throws std::system_error  it is missing, or is no folder.
  static Folder open(const std::filesystem::path& path);
  /// The same; missing parts of the path are made.
  /// \throws std::system_error  it cannot be made.
  static Folder make(const std::filesystem::path& path);

  /// A new folder in this one.
  /// \throws std::system_error  it cannot be made; EEXIST: the name is taken.
  [[nodiscard]] Folder make_new(const std::string& name) const;

  /// A folder in this one, or further down: 'attempt_0/3'. Missing parts are made. Empty when the machine refuses,
  /// with errno; EPERM: another user made it.
  [[nodiscard]] Folder inner(std::string_view names) const;

  /// It was removed: nothing can be made in it any more.
  [[nodiscard]] bool is_removed() const;

  /// Another user may make path() lead to another place, or has done so: a folder on the way, links followed one by
  /// one, belongs to another user, or another user may rename in it. Writes through the descriptor stay here, but a
  /// process that gets the name could be led into any file. Trusted are root, its sticky folders, and groups with the
  /// number of our user, which by convention have no other member. Also true where it cannot be found out.
  [[nodiscard]] bool may_be_replaced() const;

  /// Another user may rename what is in it, and put something else in that place. Trusted as above.
  [[nodiscard]] bool lets_others_rename() const;

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(fd_); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// As it was when the folder was opened.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// '/proc/self/fd/7': leads here, also where path() has been replaced.
  [[nodiscard]] std::filesystem::path by_descriptor() const;

 private:
  Folder(Fd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::filesystem::path path_;
};

}  // namespace lrun::inline core
