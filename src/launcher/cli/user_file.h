#pragma once

#include <cstddef>
#include <string>

namespace lrun::launcher {

/// The text of a file, or the reason why it cannot be read.
struct FileText {
  int error_number = 0;  ///< of open or read (ENOENT, EACCES, EISDIR), or of read_user_file(); 0: the file was read
  std::string text;
};

/// Reads a file that the user named: a regular file, /dev/null, or a pipe as in '--hostfile <(scontrol show
/// hostnames)'.
/// \return EFBIG: longer than `most_bytes`; ENXIO: another device; ETIME: a pipe without data for 10 seconds; ENOLINK:
/// a
///         link to a file that does not exist.
FileText read_user_file(const std::string& path, std::size_t most_bytes);

}  // namespace lrun::launcher
