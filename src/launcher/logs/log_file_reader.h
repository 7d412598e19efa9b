#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "logs/line_splitter.h"

namespace lrun::launcher {

/// Reads what RankLogFile wrote, or still writes: the lines of one rank's stream, in bounded memory. Where the file was
/// renamed to `<name>.1` meanwhile, it goes on there first. Keeps no file open between two calls.
class LogFileReader {
 public:
  /// Pieces of lines, as LineSplitter gives them.
  using Sink = std::function<void(std::string_view piece)>;

  explicit LogFileReader(std::filesystem::path path) : path_(std::move(path)) {}

  /// Passes over all that is there but the last lines. To be called before read().
  void skip_to_last(std::uint64_t lines);
  /// Passes on what has been written since the last call. An unfinished line is held back.
  void read(const Sink& sink);
  /// Passes on an unfinished line: nothing will be written any more.
  void finish(const Sink& sink) { lines_.finish(sink); }

  /// Tells a file from others, also from one that got its inode.
  struct Identity {
    std::uint64_t inode = 0;  ///< 0: no file
    std::int64_t born_s = 0;  ///< 0 where the file system does not say
    std::uint32_t born_ns = 0;

    bool operator==(const Identity&) const = default;
  };

 private:
  [[nodiscard]] std::filesystem::path renamed() const { return path_.string() + ".1"; }

  std::filesystem::path path_;
  Identity file_;  ///< that `at_` is a place in
  off_t at_ = 0;
  LineSplitter lines_;
};

}  // namespace lrun::launcher
