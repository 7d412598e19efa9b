#include "verdict/core_file.h"

#include <glob.h>
#include <sys/stat.h>

#include <ctime>

#include "base/small_file.h"

namespace lrun {
namespace {

constexpr std::size_t kMostBytes = 4096;
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

/// The newest file that matches; empty when there is none.
std::string newest_match(const std::string& pattern) {
  glob_t found{};
  std::string newest;
  std::time_t newest_time = 0;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      struct stat status {};
      if (::stat(found.gl_pathv[i], &status) != 0 || !S_ISREG(status.st_mode) || status.st_mtime < newest_time)
        continue;
      newest = found.gl_pathv[i];
      newest_time = status.st_mtime;
    }
  }
  ::globfree(&found);
  return newest;
}

std::string first_line(const char* path) {
  const std::string text = read_small_file(path, kMostBytes).value_or("");
  return text.substr(0, text.find('\n'));
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

std::string core_dump_in_words(pid_t pid, int signal_number, const std::string& folder) {
  const std::string pattern = first_line(kPatternFile);
  if (pattern.starts_with('|')) {
    if (pattern.find("systemd-coredump") != std::string::npos) return "'coredumpctl gdb " + std::to_string(pid) + "'";
    return "given to '" + pattern.substr(1, pattern.find(' ') - 1) + "'";
  }
  const bool uses_pid = first_line(kUsesPidFile) == "1";
  const std::string found = newest_match(core_file_pattern(pattern, uses_pid, pid, signal_number, folder));
  return found.empty() ? "not found by the kernel's pattern '" + pattern + "' in " + folder : found;
}

}  // namespace lrun
