#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/folder.h"

namespace lrun::launcher {

/// One stream of one rank as a file, byte for byte.
///
/// Made at the first byte, its folders too. Bytes that come before the file has a name are kept in memory. When the
/// disk refuses bytes they are lost for the file and the next write tries again; once it succeeds, a line in the file
/// says how many bytes are missing there.
///
/// With a limit the file is renamed to `<name>.1`, in place of an older one, before it would grow beyond it, at the end
/// of a line. A line that is longer than a file is cut; one that was written in parts may end up to 64 KiB behind the
/// limit.
class RankLogFile {
 public:
  /// \param max_bytes  of the file before it is renamed; 0: no limit.
  explicit RankLogFile(std::uint64_t max_bytes = 0) : max_bytes_(max_bytes) {}

  /// Says where the file is to be: at `place` below `folder`, which must outlive it, as open_to_append() has it. Writes
  /// what was kept. \return as write().
  int open_at(const Folder& folder, std::string place);

  /// \return 0, or the errno of the machine's refusal; never throws for one.
  int write(std::string_view bytes);

  void close() { fd_.reset(); }

  [[nodiscard]] bool named() const { return folder_ != nullptr; }
  /// Once it was named.
  [[nodiscard]] std::filesystem::path path() const { return folder_->path() / place_; }
  /// Bytes wait for the name.
  [[nodiscard]] bool keeps_bytes() const { return !kept_.empty(); }
  /// The file was made.
  [[nodiscard]] bool made() const { return made_; }

 private:
  int make();
  int store(std::string_view bytes);
  int store_in_turns(std::string_view bytes);
  /// How many of `bytes` still belong into this file.
  [[nodiscard]] std::size_t fitting(std::string_view bytes) const;
  int begin_anew();

  const Folder* folder_ = nullptr;
  std::string place_;  ///< a path of the library takes six times as much, and there is one a rank and stream
  Fd fd_;
  bool made_ = false;
  std::uint64_t max_bytes_;
  std::uint64_t size_ = 0;        ///< where there is a limit
  bool within_line_ = false;      ///< the file's last byte is no newline
  std::string kept_;              ///< what came before the name
  std::uint64_t lost_bytes_ = 0;  ///< since the last note
  int refusal_ = 0;               ///< errno of the first loss since the last note
};

/// The last `most` bytes of a file, from the first whole line on; empty when it cannot be read.
std::string end_of_file(const std::filesystem::path& path, std::size_t most);

}  // namespace lrun::launcher
