#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>

namespace lrun::inline core {

/// A pattern for glob(3) of the names that the kernel may have given to a core file. What the launcher cannot know
/// for sure (time, names of threads, user) is a '*'. Pure.
/// \param core_pattern  as /proc/sys/kernel/core_pattern has it, not one that begins with '|'.
/// \param uses_pid      as /proc/sys/kernel/core_uses_pid.
/// \param folder        where the process ran, for a relative pattern.
std::string core_file_pattern(std::string_view core_pattern, bool uses_pid, pid_t pid, int signal_number,
                              std::string_view folder);

/// How this machine names core files.
struct CorePattern {
  std::string text;       ///< as /proc/sys/kernel/core_pattern
  bool uses_pid = false;  ///< as /proc/sys/kernel/core_uses_pid

  /// As the kernel has it now.
  static CorePattern of_this_machine();
  /// One process's core never has the name of another's.
  [[nodiscard]] bool names_process() const { return uses_pid || text.find("%p") != std::string::npos; }
};

/// A process that a signal ended, and that was allowed to leave a core file.
struct EndedProcess {
  pid_t pid = 0;
  int signal_number = 0;
  std::string folder;               ///< where it ran
  bool dumped = false;              ///< the kernel says that a core was written
  bool limit_is_zero = false;       ///< its limit of core files was 0
  std::map<pid_t, int> ranks = {};  ///< of other workers, by pid: their core files may lie there, too
};

/// Where the core of an ended process is, in words: a path, or the program that the kernel gave it to, with how to see
/// it where that is known. Never another process's: a core file names its own. Where the kernel wrote none although the
/// signal asks for one, why; empty for a signal that asks for none. Looks at the machine.
std::string core_dump_in_words(const EndedProcess& process, const CorePattern& pattern);

}  // namespace lrun::inline core
