#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/folder.h"

namespace lrun::inline core {

/// Lets the owner read and write an open file, also where the umask forbade it when it was made.
void keep_for_owner(int file);

/// Writes a file in `folder` whole or not at all: first as '<name>.new', which is then renamed or removed.
/// \return 0, or the errno of the machine's refusal.
int replace_file(const Folder& folder, const std::string& name, std::string_view text, mode_t mode);

}  // namespace lrun::inline core
