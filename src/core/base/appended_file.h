#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/folder.h"

namespace lrun::inline core {

/// Opens a file below `folder` to append to, 'attempt_0/3/stdout.log', and makes it, with the folders on its way, where
/// it is missing: a person may empty it while it grows.
///
/// Never waits. A file that is not regular (a pipe without a reader would block us for ever) is refused, and so is a
/// link.
/// \return empty when the machine refuses, with errno; ENXIO: no regular file; ELOOP: a link.
Fd open_to_append(const Folder& folder, std::string_view place, mode_t mode);

/// Renames a file below `folder` to '<name>.1', in the place of an older one. Does nothing where there is no such file.
/// \return 0, or the errno of the machine's refusal.
int set_aside(const Folder& folder, std::string_view place);

/// Why open_to_append(), or a write to what it opened, was refused.
std::string file_refusal_text(int error_number);

}  // namespace lrun::inline core
