#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace lrun {

/// A pattern for glob(3) of the names that the kernel may have given to a core file. What the launcher cannot know
/// for sure (time, names of threads, user) is a '*'. Pure.
/// \param core_pattern  as /proc/sys/kernel/core_pattern has it, not one that begins with '|'.
/// \param uses_pid      as /proc/sys/kernel/core_uses_pid.
/// \param folder        where the process ran, for a relative pattern.
std::string core_file_pattern(std::string_view core_pattern, bool uses_pid, pid_t pid, int signal_number,
                              std::string_view folder);

/// Where the core of an ended process is, in words: a path, or the program that the kernel gave it to, with how to see
/// it where that is known. Looks at the machine.
std::string core_dump_in_words(pid_t pid, int signal_number, const std::string& folder);

}  // namespace lrun
