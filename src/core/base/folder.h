#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace lrun::inline core {

/// A folder that is held open. What is made in it is reached through its descriptor and never through a link, so that
/// whoever puts a link in the way, or another folder in the place of this one, leads no write elsewhere.
///
/// Folders that it makes are their owner's alone, 0700, whatever the umask; it changes the process's umask for that
/// moment, so that only a process of one thread may make any.
class Folder {
 public:
  /// None.
  Folder() = default;

  /// A path of the user's, in which links are followed.
  /// \throws std::system_error  it is not there, or is no folder.
  static Folder open(const std::filesystem::path& path);
  /// The same; what is missing of it is made.
  /// \throws std::system_error  it cannot be made.
  static Folder make(const std::filesystem::path& path);

  /// A new folder in this one.
  /// \throws std::system_error  it cannot be made; EEXIST: something has this name.
  [[nodiscard]] Folder make_new(const std::string& name) const;

  /// A folder in this one, or further down: 'attempt_0/3'. What is missing is made. Empty when the machine refuses,
  /// with errno; EPERM: another user made it.
  [[nodiscard]] Folder inner(std::string_view names) const;

  /// Somebody removed it: nothing can be made in it any more.
  [[nodiscard]] bool is_removed() const;

  /// Another user may make path() lead elsewhere, or has done so: somebody else owns, or may rename in, a folder on the
  /// way to it, links followed one by one. What is written through the descriptor stays here; a process that is told
  /// the name could be led into any file. Root is trusted, sticky folders of root's as well, and groups with the number
  /// of our user, which by convention hold nobody else. True, too, of what cannot be found out.
  [[nodiscard]] bool may_be_replaced() const;

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(fd_); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// As it was when the folder was opened; empty of none.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// '/proc/self/fd/7': leads here, whatever is at path() by now.
  [[nodiscard]] std::filesystem::path by_descriptor() const;

 private:
  Folder(Fd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::filesystem::path path_;
};

}  // namespace lrun::inline core
