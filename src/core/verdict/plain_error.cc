// In: the last lines of a program that exited. Out: the line in which it gave the reason. explain() calls this when
// find_printed_error() finds nothing.
#include "verdict/plain_error.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "base/without_numbers.h"
#include "verdict/has_any.h"
#include "verdict/python_traceback.h"

namespace lrun::inline core {
namespace {

constexpr std::ptrdiff_t kNearTheEndOfErrors = 3;
constexpr std::ptrdiff_t kMostAfter = 8;  // lines on the other stream, which may come late from a buffer

constexpr std::array kMarks{
    std::string_view("error: "),          std::string_view("Error: "),   std::string_view("ERROR: "),
    std::string_view("fatal: "),          std::string_view("Fatal: "),   std::string_view("FATAL: "),
    std::string_view("ERROR:"),           std::string_view("CRITICAL:"),  // Python's logging
    std::string_view("Unknown option: "),                                 // Python's own command line
};

/// Beginnings of lines that programs print beside the error: usage, the place of a report, lines that libraries print
/// whenever a process ends.
constexpr std::array kBeside{std::string_view("usage:"),
                             std::string_view("Usage:"),
                             std::string_view("Try '"),
                             std::string_view(" "),
                             std::string_view("\t"),
                             std::string_view("Node.js v"),
                             std::string_view("Execution halted"),
                             std::string_view("stack traceback:"),
                             std::string_view("wandb: ")};

/// Log lines look like that while all is well.
constexpr std::array kNoErrors{std::string_view("INFO"), std::string_view("DEBUG"), std::string_view("TRACE"),
                               std::string_view("WARN"), std::string_view("Warn"),  std::string_view("warn")};

/// How shells and tools end the line about a failure: 'ls: cannot access 'x': No such file or directory'.
constexpr std::array kReasons{
    std::string_view(": No such file or directory"),
    std::string_view("] No such file or directory"),  // Python's, behind '[Errno 2'
    std::string_view(": Permission denied"),
    std::string_view("] Permission denied"),
    std::string_view(": Is a directory"),
    std::string_view(": Not a directory"),
    std::string_view(": No space left on device"),
    std::string_view(": command not found"),
    std::string_view(": not found"),
    std::string_view(": unbound variable"),
    std::string_view(": No such file"),  // of dash about its script
};

bool starts_with_any(std::string_view line, const auto& all_words) {
  return std::any_of(all_words.begin(), all_words.end(),
                     [&](std::string_view words) { return line.starts_with(words); });
}

bool is_beside(std::string_view line) {
  return line.empty() || starts_with_any(line, kBeside) || without_rank_prefix(line).starts_with("[W");
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// The form of Perl's die: 'no data at train.pl line 3.'
bool tells_line_of_source(std::string_view line) {
  const auto words = line.rfind(" line ");
  if (words == std::string_view::npos || !line.ends_with('.') || line.rfind(" at ", words) == std::string_view::npos) {
    return false;
  }
  const std::string_view number = line.substr(words + 6, line.size() - words - 7);
  return !number.empty() && std::all_of(number.begin(), number.end(), is_digit);
}

/// 'epoch 3: 40%'. An error line may look like that, too; but reporting progress as the error would be worse.
bool is_progress(std::string_view line) {
  const auto percent = line.find('%');
  return percent != std::string_view::npos && percent > 0 && is_digit(line[percent - 1]);
}

/// The same line with other numbers: a log that repeats.
bool repeats(const std::vector<std::string>& said, std::string_view last) {
  const std::string pattern = without_numbers(last);
  return std::count_if(said.begin(), said.end(),
                       [&](const std::string& line) { return without_numbers(line) == pattern; }) > 1;
}

/// A text that is not a line of a log, a shell's trace or a progress bar.
bool may_be_the_reason(const std::vector<std::string>& said) {
  const std::string_view last = said.back();
  const bool words = std::any_of(last.begin(), last.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           static_cast<unsigned char>(letter) > 127;
  });
  return words && !last.starts_with("+ ") && !has_any(last, kNoErrors) && !is_progress(last) && !repeats(said, last);
}

/// Only a few lines and call stacks follow it.
bool is_near_the_end(const std::vector<std::string>& lines, const std::string& line) {
  const auto found = std::find(lines.rbegin(), lines.rend(), line);
  return found != lines.rend() &&
         std::count_if(lines.rbegin(), found, [](const std::string& later) { return !is_beside(later); }) <= kMostAfter;
}

/// The rest of the line after a program's name, which is one word and a colon.
std::string_view behind_name(std::string_view line) {
  const auto colon = line.find(": ");
  const bool named = colon != std::string_view::npos && line.find(' ') > colon;
  return named ? line.substr(colon + 2) : std::string_view();
}

constexpr std::string_view kOfMake = "*** ";
constexpr std::string_view kWaits = "*** Waiting";  // printed after the failure
constexpr std::array kMakes{std::string_view("make"), std::string_view("gmake"), std::string_view("mingw32-make")};

/// 'make', '/usr/bin/gmake', 'make[1]'.
bool is_make(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);
  if (const auto bracket = name.find('['); bracket != std::string_view::npos) {
    const std::string_view level = name.substr(bracket + 1);
    if (level.size() < 2 || !level.ends_with(']') || !std::all_of(level.begin(), level.end() - 1, is_digit))
      return false;
    name = name.substr(0, bracket);
  }
  return std::find(kMakes.begin(), kMakes.end(), name) != kMakes.end();
}

/// 'make: *** [Makefile:3: all] Error 2', 'make[1]: *** No rule to make target 'x'.  Stop.'
bool is_of_make(std::string_view line) {
  const std::string_view words = behind_name(line);
  return words.starts_with(kOfMake) && is_make(line.substr(0, line.size() - words.size() - 2));
}

/// The recipe's own message comes before make's line about it, and the line of the innermost make before the others'.
std::string find_of_make(const std::vector<std::string>& last_lines, const std::vector<std::string>& error_lines) {
  const auto found = std::find_if(error_lines.begin(), error_lines.end(), [&](const std::string& line) {
    return is_of_make(line) && !behind_name(line).starts_with(kWaits) && is_near_the_end(last_lines, line);
  });
  return found != error_lines.end() ? *found : std::string();
}

/// Of bash, which shows the line of the script behind it, and of dash.
bool is_of_shells_parser(std::string_view line) {
  return line.find(": syntax error near ") != std::string_view::npos ||
         line.find(": Syntax error: ") != std::string_view::npos;
}

bool tells_reason(std::string_view line) {
  if (tells_line_of_source(line)) return true;
  return !behind_name(line).empty() &&
         std::any_of(kReasons.begin(), kReasons.end(), [&](std::string_view words) { return line.ends_with(words); });
}

}  // namespace

bool is_marked_as_error(std::string_view line) {
  return starts_with_any(line, kMarks) || starts_with_any(behind_name(line), kMarks);
}

std::string find_plain_error(const std::vector<std::string>& last_lines, const std::vector<std::string>& error_lines,
                             bool may_be_unmarked) {
  std::vector<std::string> said;
  std::copy_if(error_lines.begin(), error_lines.end(), std::back_inserter(said),
               [](const std::string& line) { return !is_beside(line) && !is_of_make(line); });
  if (said.empty()) return find_of_make(last_lines, error_lines);
  const auto most = std::min(kNearTheEndOfErrors, static_cast<std::ptrdiff_t>(said.size()));
  auto found = std::find_if(said.rbegin(), said.rbegin() + most, [](const std::string& line) {
    return is_marked_as_error(line) || is_of_shells_parser(line);
  });
  const bool last = tells_reason(said.back()) || (may_be_unmarked && may_be_the_reason(said));
  if (found == said.rbegin() + most && last) found = said.rbegin();
  const bool seen = found != said.rbegin() + most && is_near_the_end(last_lines, *found);
  return seen ? *found : find_of_make(last_lines, error_lines);
}

}  // namespace lrun::inline core
