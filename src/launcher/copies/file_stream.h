#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "copies/saved_files.h"

namespace lrun::launcher {

/// Files as bytes for a connection, made as it takes them: what is gone, each file, and a commit. One thread.
class FileStream {
 public:
  enum class Commit {
    kNone,  ///< more files follow
    kChanges,
    kAllFiles,  ///< others are not there
  };

  FileStream(std::vector<OpenFile> files, std::vector<std::string> gone, Commit commit)
      : files_(std::move(files)), gone_(std::move(gone)), commit_(commit) {}

  /// Appends some hundred kilobytes at most. \return false: that was all
  bool append_next(std::string& out);

  /// After the last one: files that a program changed in their place while they were read. They do not count.
  [[nodiscard]] const std::vector<std::string>& changed() const { return changed_; }

 private:
  void append_content(std::string& out);

  std::vector<OpenFile> files_;
  std::vector<std::string> gone_;
  Commit commit_;
  std::vector<std::string> changed_;
  std::size_t next_ = 0;    ///< of files_
  bool has_begun_ = false;  ///< that file
  std::uint64_t sent_ = 0;  ///< bytes of it
  std::uint32_t checksum_ = 0;
  bool is_whole_ = true;  ///< it is, so far
};

}  // namespace lrun::launcher
