#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/fd.h"

namespace lrun {

/// Opens a file to append to, and makes it if it is not there: a person may empty it while it grows.
///
/// Never waits, whoever put something else in its place: what is not a regular file (a pipe that nobody reads would
/// block us for ever) is refused.
/// \return empty when the machine refuses, with errno; ENXIO: no regular file.
Fd open_to_append(const std::filesystem::path& path, mode_t mode);

/// Why open_to_append(), or a write to what it opened, was refused.
std::string file_refusal_in_words(int error_number);

}  // namespace lrun
