// In: a process that died of a signal, and the kernel's settings for core files. Out: a text about its core file.
#include "verdict/core_file.h"

#include <glob.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <vector>

#include "base/small_file.h"
#include "verdict/core_owner.h"

namespace lrun::inline core {
namespace {

constexpr std::size_t kMostPatternBytes = 4096;
constexpr const char* kPatternFile = "/proc/sys/kernel/core_pattern";
constexpr const char* kUsesPidFile = "/proc/sys/kernel/core_uses_pid";

void append_literally(std::string& pattern, char letter) {
  if (std::string_view("*?[]\\").find(letter) != std::string_view::npos) pattern += '\\';
  pattern += letter;
}

void append_specifier(std::string& pattern, char specifier, pid_t pid, int signal_number) {
  if (specifier == '%') pattern += '%';
  if (specifier == 'p') pattern += std::to_string(pid);
  if (specifier == 's') pattern += std::to_string(signal_number);
  if (std::string_view("%ps").find(specifier) == std::string_view::npos) pattern += '*';
}

struct Match {
  std::string file;
  std::time_t time = 0;
};

/// Regular files whose names match, the newest first.
std::vector<Match> matches_of(const std::string& pattern) {
  glob_t found{};
  std::vector<Match> matches;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      struct stat status {};
      if (::lstat(found.gl_pathv[i], &status) == 0 && S_ISREG(status.st_mode)) {
        matches.push_back({found.gl_pathv[i], status.st_mtime});
      }
    }
  }
  ::globfree(&found);
  std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) { return a.time > b.time; });
  return matches;
}

std::string first_line(const char* path) {
  const std::string text = read_small_file(path, kMostPatternBytes).value_or("");
  return text.substr(0, text.find('\n'));
}

/// The signals whose default action is a core dump: signal(7).
bool asks_for_core(int signal_number) {
  constexpr std::array kSignals{SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
  return std::find(kSignals.begin(), kSignals.end(), signal_number) != kSignals.end();
}

std::string glob_of(const EndedProcess& process, const CorePattern& pattern) {
  return core_file_pattern(pattern.text, pattern.uses_pid, process.pid, process.signal_number, process.folder);
}

/// The program that a pattern such as '|/usr/bin/apport %p' names.
std::string receiver_in(const CorePattern& pattern) { return pattern.text.substr(1, pattern.text.find(' ') - 1); }

std::string place_of_core(const EndedProcess& process, const CorePattern& pattern) {
  if (pattern.text.starts_with('|')) {
    const bool kept = pattern.text.find("systemd-coredump") != std::string::npos;
    return kept ? "'coredumpctl gdb " + std::to_string(process.pid) + "'" : "given to '" + receiver_in(pattern) + "'";
  }
  const std::vector<Match> matches = matches_of(glob_of(process, pattern));
  std::vector<pid_t> owners;
  for (const Match& match : matches) owners.push_back(owner_of_core(match.file));
  const auto own = std::find(owners.begin(), owners.end(), process.pid);
  if (own != owners.end()) return matches[static_cast<std::size_t>(own - owners.begin())].file;
  if (matches.empty()) return "not found by the kernel's pattern '" + pattern.text + "' in " + process.folder;
  const std::string& newest = matches.front().file;
  if (pattern.names_process()) return newest;  // the file is not readable, or its pid is of another namespace
  const std::string why = ": the kernel's pattern '" + pattern.text + "' has no '%p'";
  if (owners.front() == 0) return newest + " may belong to another process" + why;
  const auto rank = process.ranks.find(owners.front());
  const std::string whose = rank != process.ranks.end() ? "rank " + std::to_string(rank->second)
                                                        : "process " + std::to_string(owners.front());
  return newest + " belongs to " + whose + ", which overwrote it" + why;
}

/// The one name that matches a pattern for glob(3); empty when several names may match.
std::string name_of_pattern(const std::string& pattern) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '*') return {};
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    name += pattern[i];
  }
  return name;
}

/// Why no file can be created in the folder; empty when one can.
std::string problem_of(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return "'" + folder + "' is not a folder";
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return "'" + folder + "' is not writable";
  struct statvfs room {};
  const bool full = ::statvfs(folder.c_str(), &room) == 0 && room.f_blocks > 0 && room.f_bavail == 0;
  return full ? "no space is left in '" + folder + "'" : std::string();
}

/// Why the kernel wrote no core file, as far as the machine shows it.
std::string why_none(const EndedProcess& process, const CorePattern& pattern) {
  if (process.limit_is_zero) return "the core file size limit is 0";
  if (pattern.text.starts_with('|')) return "'" + receiver_in(pattern) + "' did not accept it";
  const std::string names = glob_of(process, pattern);
  const std::string folder = name_of_pattern(names.substr(0, std::max<std::size_t>(1, names.rfind('/'))));
  if (std::string problem = problem_of(folder); !folder.empty() && !problem.empty()) return problem;
  // The kernel does not follow a symbolic link, and does not overwrite the file of another user.
  const std::string file = name_of_pattern(names);
  struct stat status {};
  const bool in_the_way = !file.empty() && ::lstat(file.c_str(), &status) == 0;
  if (in_the_way && !S_ISREG(status.st_mode)) return "'" + file + "' exists and is not a regular file";
  if (in_the_way && status.st_uid != ::geteuid()) return "'" + file + "' exists and belongs to another user";
  return "the program may have disabled core files, or left '" + process.folder + "'";
}

}  // namespace

std::string core_file_pattern(std::string_view core_pattern, bool uses_pid, pid_t pid, int signal_number,
                              std::string_view folder) {
  std::string pattern;
  if (!core_pattern.starts_with('/')) {
    for (const char letter : folder) append_literally(pattern, letter);
    pattern += '/';
  }
  for (std::size_t i = 0; i < core_pattern.size(); ++i) {
    if (core_pattern[i] != '%') {
      append_literally(pattern, core_pattern[i]);
    } else if (++i < core_pattern.size()) {
      append_specifier(pattern, core_pattern[i], pid, signal_number);
    }
  }
  if (uses_pid && core_pattern.find("%p") == std::string_view::npos) pattern += "." + std::to_string(pid);
  return pattern;
}

CorePattern CorePattern::of_this_machine() { return {first_line(kPatternFile), first_line(kUsesPidFile) == "1"}; }

std::string describe_core_dump(const EndedProcess& process, const CorePattern& pattern) {
  if (process.dumped) return place_of_core(process, pattern);
  return asks_for_core(process.signal_number) ? "none was written: " + why_none(process, pattern) : std::string();
}

}  // namespace lrun::inline core
