#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"

namespace lrun::launcher {

/// By these a file is told from the one that had its name before.
struct FileStamp {
  ino_t inode = 0;
  std::int64_t time_ns = 0;  ///< of the last change, on the wall clock
  std::uint64_t bytes = 0;

  bool operator==(const FileStamp&) const = default;
};

/// The files of a folder and of those below it, by their path in it.
using SavedFiles = std::map<std::string, FileStamp>;

inline constexpr std::size_t kMostSavedFiles = 10'000;
inline constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

/// The files that programs have saved there: neither links nor files whose name says that they are not complete, and at
/// most kMostSavedFiles. `watch` is called with each folder before it is read.
SavedFiles saved_files(const std::string& folder, const std::function<void(const char* path)>& watch = {});

/// A file that is sent: its content stays, whatever happens to its name.
struct OpenFile {
  std::string path;  ///< in its folder
  Fd fd;
  FileStamp stamp;
  mode_t mode = 0;
};

/// Opens a file. Empty `fd`: it is gone, or a program is writing to it.
OpenFile open_complete(const std::string& folder, const std::string& path);

/// It was not changed since it was opened.
bool is_unchanged(const OpenFile& file);

}  // namespace lrun::launcher
