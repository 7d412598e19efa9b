#pragma once

#include <sys/types.h>

#include <string>

namespace lrun::inline core {

/// The process whose memory a core file holds, by the notes in the file; 0: not a core file of this machine's word
/// size, truncated, or not readable. Every byte is checked: the file may hold anything.
pid_t owner_of_core(const std::string& file);

}  // namespace lrun::inline core
