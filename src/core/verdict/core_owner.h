#pragma once

#include <sys/types.h>

#include <string>

namespace lrun::inline core {

/// The process whose memory a core file holds, as the notes in it say; 0: it is no core file of this machine's word
/// size, is cut off, or cannot be read. Every byte is checked: the file may be anything.
pid_t owner_of_core(const std::string& file);

}  // namespace lrun::inline core
