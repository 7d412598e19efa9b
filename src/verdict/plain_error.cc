#include "verdict/plain_error.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace lrun {
namespace {

constexpr std::ptrdiff_t kNearTheEndOfErrors = 3;
constexpr std::ptrdiff_t kMostAfter = 8;  // lines on the other stream, which may have waited in a buffer

constexpr std::array kMarks{
    std::string_view("error: "), std::string_view("Error: "), std::string_view("ERROR: "),
    std::string_view("fatal: "), std::string_view("Fatal: "), std::string_view("FATAL: "),
};

/// What programs say beside the error: how they are used, where it is written, the rest of a report.
constexpr std::array kBeside{std::string_view("usage:"), std::string_view("Usage:"), std::string_view("Try '"),
                             std::string_view(" "), std::string_view("\t")};

/// How shells and tools end the line in which they say what failed: 'ls: cannot access 'x': No such file or directory'.
constexpr std::array kReasons{
    std::string_view(": No such file or directory"),
    std::string_view(": Permission denied"),
    std::string_view(": Is a directory"),
    std::string_view(": Not a directory"),
    std::string_view(": No space left on device"),
    std::string_view(": command not found"),
    std::string_view(": not found"),
    std::string_view(": unbound variable"),
};

bool starts_with_any(std::string_view line, const auto& all_words) {
  return std::any_of(all_words.begin(), all_words.end(),
                     [&](std::string_view words) { return line.starts_with(words); });
}

bool is_beside(std::string_view line) { return line.empty() || starts_with_any(line, kBeside); }

/// Nothing but a few lines and call stacks came after it.
bool is_near_the_end(const std::vector<std::string>& lines, const std::string& line) {
  const auto found = std::find(lines.rbegin(), lines.rend(), line);
  return found != lines.rend() &&
         std::count_if(lines.rbegin(), found, [](const std::string& later) { return !is_beside(later); }) <= kMostAfter;
}

/// Behind a program's name: one word and a colon.
std::string_view behind_name(std::string_view line) {
  const auto colon = line.find(": ");
  const bool named = colon != std::string_view::npos && line.find(' ') > colon;
  return named ? line.substr(colon + 2) : std::string_view();
}

bool tells_reason(std::string_view line) {
  return !behind_name(line).empty() &&
         std::any_of(kReasons.begin(), kReasons.end(), [&](std::string_view words) { return line.ends_with(words); });
}

}  // namespace

bool is_marked_as_error(std::string_view line) {
  return starts_with_any(line, kMarks) || starts_with_any(behind_name(line), kMarks);
}

std::string find_plain_error(const std::vector<std::string>& last_lines, const std::vector<std::string>& error_lines) {
  std::vector<std::string> said;
  std::copy_if(error_lines.begin(), error_lines.end(), std::back_inserter(said),
               [](const std::string& line) { return !is_beside(line); });
  if (said.empty()) return {};
  const auto most = std::min(kNearTheEndOfErrors, static_cast<std::ptrdiff_t>(said.size()));
  auto found = std::find_if(said.rbegin(), said.rbegin() + most, is_marked_as_error);
  if (found == said.rbegin() + most && tells_reason(said.back())) found = said.rbegin();
  const bool seen = found != said.rbegin() + most && is_near_the_end(last_lines, *found);
  return seen ? *found : std::string();
}

}  // namespace lrun
