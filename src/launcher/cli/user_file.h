#pragma once

#include <cstddef>
#include <string>

namespace lrun::launcher {

/// What is in a file, or why it cannot be read.
struct FileText {
  int error_number = 0;  ///< of open or read: ENOENT, EACCES, EISDIR; the others of read_user_file(); 0: read
  std::string text;
};

/// A file that the user names: a regular one, /dev/null or a pipe, as of '--hostfile <(scontrol show hostnames)'.
/// \return EFBIG: longer than `most_bytes`; ENXIO: another device; ETIME: a pipe in which nothing came for 10 seconds;
///         ENOLINK: a link that leads nowhere.
FileText read_user_file(const std::string& path, std::size_t most_bytes);

}  // namespace lrun::launcher
