#include "verdict/last_words.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "verdict/native_error.h"
#include "verdict/python_traceback.h"

namespace lrun::inline core {
namespace {

constexpr std::string_view kThreadsLeft = "terminate called without an active exception";

/// An exception's own text may hold words of the other kind: what begins inside the traceback belongs to it. And when
/// an exception ends a program, its threads may be torn down badly.
bool belongs_to(const FoundError& python, const FoundError& native) {
  return native.line <= python.line + 2 || native.words.error == kThreadsLeft;
}

/// Call stacks, and what is printed whenever a process of theirs ends.
bool says_nothing(std::string_view line) {
  for (const std::string_view beginning : {"frame #", "Exception ignored in", "wandb: ", "[W"}) {
    if (without_rank_prefix(line).starts_with(beginning)) return true;
  }
  return line.find_first_not_of(" \t") == std::string_view::npos || line.starts_with(' ');
}

/// The program ended with it, as far as the lines behind it up to `end` show: it may have been handled, and other
/// things came later.
bool is_the_end(const std::optional<FoundError>& found, const std::vector<std::string>& lines, std::size_t end) {
  if (!found) return false;
  std::size_t after = 0;
  for (std::size_t i = found->line + 1; i < end && after <= found->most_after; ++i) {
    const bool of_the_report = std::find(found->words.lines.begin(), found->words.lines.end(),
                                         without_rank_prefix(lines[i])) != found->words.lines.end();
    if (!of_the_report && !says_nothing(lines[i])) ++after;
  }
  return after <= found->most_after;
}

LastWords last_lines(const std::vector<std::string>& lines) {
  LastWords words;
  for (std::size_t i = lines.size(); i-- > 0 && words.lines.size() < LastWords::kMostLines;) {
    if (words.lines.empty() && lines[i].empty()) continue;
    words.lines.insert(words.lines.begin(), lines[i]);
  }
  return words;
}

/// What a program said before it aborted, and where in Python it was then: faulthandler reports after it.
LastWords located(LastWords why, const LastWords& where) {
  if (why.location.empty()) why.location = where.location;
  for (std::size_t i = 1; i < where.lines.size() && why.lines.size() < LastWords::kMostLines; ++i) {
    why.lines.push_back(where.lines[i]);
  }
  return why;
}

}  // namespace

LastWords find_last_words(const std::vector<std::string>& lines, bool may_be_an_exception) {
  std::optional<FoundError> python = find_python_error(lines);
  std::optional<FoundError> native = find_native_error(lines);
  const bool fatal = python && python->most_after == FoundError::kNoLimit;
  const bool signal = python && is_report_of_signal(python->words.error);
  if (!is_the_end(python, lines, lines.size()) || (!may_be_an_exception && !fatal)) python.reset();
  const bool before_signal = signal && native && native->line < python->line;
  if (!is_the_end(native, lines, before_signal ? python->line : lines.size())) native.reset();
  if (signal && python && native) return located(std::move(native->words), python->words);
  if (python && (!native || belongs_to(*python, *native))) return std::move(python->words);
  if (native) return std::move(native->words);
  return last_lines(lines);
}

}  // namespace lrun::inline core
