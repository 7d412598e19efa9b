#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>

namespace lrun::inline core {

/// The names that the kernel may have given to a core file, as a pattern for glob(3). The parts that the launcher does
/// not know (time, thread name, user) are '*'. Pure.
/// \param core_pattern  as /proc/sys/kernel/core_pattern has it, not one that begins with '|'.
/// \param uses_pid      as /proc/sys/kernel/core_uses_pid.
/// \param folder        where the process ran, for a relative pattern.
std::string core_file_pattern(std::string_view core_pattern, bool uses_pid, pid_t pid, int signal_number,
                              std::string_view folder);

/// How this machine names core files.
struct CorePattern {
  std::string text;       ///< as /proc/sys/kernel/core_pattern
  bool uses_pid = false;  ///< as /proc/sys/kernel/core_uses_pid

  /// As set in the kernel now.
  static CorePattern of_this_machine();
  /// True when the core files of two processes never have the same name.
  [[nodiscard]] bool names_process() const { return uses_pid || text.find("%p") != std::string::npos; }
};

/// A process that died of a signal and was allowed to write a core file.
struct EndedProcess {
  pid_t pid = 0;
  int signal_number = 0;
  std::string folder;               ///< where it ran
  bool dumped = false;              ///< the kernel reports that a core was written
  bool limit_is_zero = false;       ///< its core file size limit was 0
  std::map<pid_t, int> ranks = {};  ///< of other workers, by pid: their core files may be there, too
};

/// Text about the core of an ended process: the file's path, or the program that the kernel passed it to and how to
/// read it there. The file is checked to be this process's. Where the signal asks for a core and the kernel wrote none,
/// the reason. Empty for a signal that does not ask for a core. Reads files of this machine.
std::string describe_core_dump(const EndedProcess& process, const CorePattern& pattern);

}  // namespace lrun::inline core
