// In: the last lines of a worker. Out: the last Python error among them, with the line in the user's own code. Called
// by find_printed_error().
#include "verdict/python_traceback.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/split.h"
#include "verdict/has_any.h"

namespace lrun::inline core {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last):";
constexpr std::string_view kGroupHeader = "+ Exception Group Traceback (most recent call last):";
constexpr std::string_view kIgnored = "Exception ignored in";
constexpr std::string_view kFatal = "Fatal Python error: ";
constexpr std::string_view kMostRecentFirst = "(most recent call first):";
constexpr std::string_view kFrame = "  File \"";
constexpr std::string_view kIndentation = "  ";
constexpr std::size_t kMostMessageLines = 3;  // of an exception whose text has several lines
/// NCCL's; the line below it says the most.
constexpr std::string_view kReasonFollows = "Last error:";

bool is_indented(std::string_view line) { return line.starts_with(kIndentation); }

bool is_word_byte(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.';
}

/// 'ValueError: text', 'torch.cuda.OutOfMemoryError: text', 'KeyboardInterrupt': a dotted name, then nothing or a
/// colon.
bool names_exception(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && is_word_byte(line[end])) ++end;
  if (end == 0 || std::isdigit(static_cast<unsigned char>(line.front())) != 0) return false;
  return end == line.size() || line.substr(end).starts_with(": ") || line.substr(end) == ":";
}

/// Exceptions that may be printed without a traceback.
bool names_syntax_error(std::string_view line) {
  return line.starts_with("SyntaxError: ") || line.starts_with("IndentationError: ") || line.starts_with("TabError: ");
}

/// 'train.py:12 in step' of '  File "/home/me/train.py", line 12, in step' (or 'line 12 in step', as faulthandler has
/// it).
std::string frame_location(std::string_view line) {
  const auto quote = line.find("File \"");
  if (quote == std::string_view::npos) return {};
  line.remove_prefix(quote + 6);
  const auto end = line.find("\", line ");
  if (end == std::string_view::npos) return {};
  std::string_view file = line.substr(0, end);
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  line.remove_prefix(end + 8);
  std::size_t digits = 0;
  while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits])) != 0) ++digits;
  if (digits == 0) return {};
  std::string location = std::string(file) + ":" + std::string(line.substr(0, digits));
  line.remove_prefix(digits);
  if (line.starts_with(",")) line.remove_prefix(1);
  if (line.starts_with(" in ") && line != " in <module>") location += line;
  return location;
}

/// The file of such a line; empty: it has none.
std::string_view frame_file(std::string_view line) {
  const auto quote = line.find("File \"");
  if (quote == std::string_view::npos) return {};
  line.remove_prefix(quote + 6);
  return line.substr(0, line.find("\", line "));
}

bool is_foreign(std::string_view frame) { return is_foreign_source(frame_file(frame)); }

/// The lines without their prefixes; beyond the end lines are empty.
class Lines {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  [[nodiscard]] std::size_t size() const { return lines_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t index) const {
    return index < lines_.size() ? without_rank_prefix(lines_[index]) : std::string_view();
  }

 private:
  const std::vector<std::string>& lines_;
};

/// The frame and its source lines, from `frame` to the next one or `end`, at most `most` lines.
void add_frame(PrintedError& printed, const Lines& lines, std::size_t frame, std::size_t end, std::size_t most) {
  for (std::size_t i = frame; i < std::min(end, frame + most); ++i) {
    if (i > frame && lines[i].starts_with(kFrame)) break;
    printed.lines.emplace_back(lines[i]);
  }
}

/// NCCL's refusal of a call by its reason: the exception's own line names a source file of torch's and the version.
std::string error_of_nccl(const std::string& error, std::string_view reason) {
  constexpr std::string_view kWhere = ": NCCL error in: ";
  const auto where = error.find(kWhere);
  const bool refused = where != std::string::npos && error.find(", invalid usage", where) != std::string::npos;
  return refused ? error.substr(0, where) + ": NCCL: " + std::string(reason) : error;
}

/// The exception's line and the following lines of its text, up to an empty line or another report.
void add_message(PrintedError& printed, const Lines& lines, std::size_t named) {
  printed.error = lines[named];
  std::size_t end = named + kMostMessageLines;
  for (std::size_t i = named; i < std::min(lines.size(), end); ++i) {
    const std::string_view line = lines[i];
    if (line == kReasonFollows) {
      ++end;
      if (!lines[i + 1].empty()) printed.error = error_of_nccl(printed.error, lines[i + 1]);
    }
    const bool ends =
        line.empty() || line.find(kHeader) != std::string_view::npos || line.starts_with("terminate called ");
    if (i > named && ends) break;
    // 'RuntimeError: Error(s) in loading state_dict for Net:' says it in the next line.
    if (i == named + 1 && printed.error.ends_with(':')) printed.error.append(" ").append(trimmed(line));
    printed.lines.emplace_back(line);
  }
}

/// Reads a traceback whose header is the line before `first`.
std::optional<FoundError> read_traceback(const Lines& lines, std::size_t first) {
  std::size_t frame = first;
  std::size_t own = frame;  // the innermost frame of the user's code
  std::size_t i = first;
  // '~~~^^^' below a source line and '[Previous line repeated ...]' are indented, too.
  for (; i < lines.size() && is_indented(lines[i]); ++i) {
    if (!lines[i].starts_with(kFrame)) continue;
    frame = i;
    if (!is_foreign(lines[i])) own = i;
  }
  if (is_foreign(lines[own])) own = frame;
  if (i >= lines.size() || !names_exception(lines[i])) return std::nullopt;
  FoundError found{.line = i, .printed = {}};
  found.printed.location = frame_location(lines[own]);
  constexpr std::size_t kMostFrameLines = 3;
  if (own != frame) add_frame(found.printed, lines, own, i, kMostFrameLines - 1);
  add_frame(found.printed, lines, frame, i, kMostFrameLines);
  add_message(found.printed, lines, i);
  return found;
}

/// The kept lines may begin in the middle of a traceback: those of frameworks are longer than the lines kept of a
/// write.
std::optional<FoundError> read_beheaded_traceback(const Lines& lines) {
  std::size_t first = 0;
  while (is_indented(lines[first]) && !lines[first].starts_with(kFrame)) ++first;
  return lines[first].starts_with(kFrame) ? read_traceback(lines, first) : std::nullopt;
}

/// The line of a group's report without its margin, '  | ' or '    | '; empty for the lines between its members.
std::string_view behind_margin(std::string_view line) {
  const auto margin = line.find_first_not_of(' ');
  if (margin == std::string_view::npos || !line.substr(margin).starts_with("| ")) return {};
  return line.substr(margin + 2);
}

/// An ExceptionGroup, as TaskGroup raises it: the error is that of its first member.
std::optional<FoundError> read_group(const Lines& lines, std::size_t header) {
  std::vector<std::string> inner;
  for (std::size_t i = header + 1; i < lines.size(); ++i) inner.emplace_back(behind_margin(lines[i]));
  std::optional<FoundError> found = read_traceback(Lines(inner), 0);
  if (!found) return std::nullopt;
  const auto member = std::find_if(inner.begin() + static_cast<std::ptrdiff_t>(found->line) + 1, inner.end(),
                                   [](const std::string& line) { return names_exception(line); });
  if (member != inner.end()) {
    found->printed.error += ": " + *member;
    found->printed.lines.push_back(*member);
  }
  found->line += header + 1;
  return found;
}

/// A SyntaxError in the program itself comes without a traceback.
std::optional<FoundError> read_syntax_error(const Lines& lines, std::size_t named) {
  std::size_t frame = named;
  while (frame > 0 && named - frame < 4 && is_indented(lines[frame - 1])) {
    if (lines[--frame].starts_with(kFrame)) break;
  }
  if (!lines[frame].starts_with(kFrame)) return std::nullopt;
  FoundError found{.line = named, .printed = {}};
  found.printed.location = frame_location(lines[frame]);
  add_frame(found.printed, lines, frame, named, named - frame);
  add_message(found.printed, lines, named);
  return found;
}

/// The thread that crashed, in faulthandler's report: 'Current thread 0x00007f99e17ed040 (most recent call first):',
/// also with the thread's name in between. Its C stack, under another header, has frames of another form.
bool begins_current_thread(std::string_view line) {
  return line.starts_with("Current thread ") && line.ends_with(kMostRecentFirst);
}

bool begins_other_thread(std::string_view line) {
  return line.starts_with("Thread 0x") && line.ends_with(kMostRecentFirst);
}

constexpr std::string_view kMoreThreads = "...";  // faulthandler shows 100

/// The header of the thread that crashed, from `first` on. Where a thread without Python has crashed, no thread is the
/// current one, and the main thread comes last. The number of lines: it is not shown.
std::size_t header_of_crashed_thread(const Lines& lines, std::size_t first) {
  std::size_t header = lines.size();
  for (std::size_t i = first; i < lines.size() && !begins_current_thread(lines[header]); ++i) {
    if (lines[i] == kMoreThreads) return lines.size();
    if (begins_current_thread(lines[i]) || begins_other_thread(lines[i])) header = i;
  }
  return header;
}

/// The frames of the thread that crashed, below its header: the innermost comes first.
void add_crashed_thread(PrintedError& printed, const Lines& lines, std::size_t header) {
  std::size_t first = header + 1;
  while (lines[first].starts_with(kIndentation) && !lines[first].starts_with(kFrame)) ++first;  // 'Garbage-collecting'
  std::size_t own = first;
  while (lines[own].starts_with(kFrame) && is_foreign(lines[own])) ++own;
  if (!lines[own].starts_with(kFrame)) own = first;
  printed.location = frame_location(lines[own]);
  if (frame_location(lines[first]).empty()) return;
  printed.lines.emplace_back(lines[first]);
  if (own != first) printed.lines.emplace_back(lines[own]);
}

/// faulthandler's report. The interpreter ends after it.
std::optional<FoundError> read_fatal_error(const Lines& lines, std::size_t named) {
  FoundError found{.line = named, .printed = {}, .most_after = FoundError::kNoLimit};
  found.printed.error = lines[named];
  found.printed.lines.emplace_back(lines[named]);
  add_crashed_thread(found.printed, lines, header_of_crashed_thread(lines, named + 1));
  return found;
}

bool is_of_report(std::string_view line) {
  return line.empty() || line.starts_with(kIndentation) || line.ends_with(kMostRecentFirst) ||
         line.starts_with("Extension modules: ") || line == kMoreThreads;
}

/// The kept lines may begin in the middle of such a report, as the stacks of many threads are long: then it is all of
/// them.
std::optional<FoundError> read_beheaded_report(const Lines& lines) {
  constexpr std::size_t kFirst = 1;  // the line before it may be cut
  for (std::size_t i = kFirst; i < lines.size(); ++i) {
    if (!is_of_report(lines[i])) return std::nullopt;
  }
  const std::size_t header = header_of_crashed_thread(lines, kFirst);
  if (header == lines.size()) return std::nullopt;
  FoundError found{.line = header, .printed = {}, .most_after = FoundError::kNoLimit};
  add_crashed_thread(found.printed, lines, header);
  return found;
}

/// '/usr/bin/python3: No module named x': the interpreter's error before it runs the program.
std::optional<FoundError> read_interpreter_error(const Lines& lines, std::size_t named) {
  const std::string_view line = lines[named];
  const std::string_view program = line.substr(0, line.find(": "));
  const std::string_view name = program.substr(program.rfind('/') + 1);  // npos + 1 is 0
  if (!name.starts_with("python") || name.find(' ') != std::string_view::npos || program == line) return std::nullopt;
  FoundError found{.line = named, .printed = {}};
  found.printed.error = line.substr(program.size() + 2);
  found.printed.lines.emplace_back(line);
  return found;
}

/// Parts of paths of files that do not belong to the user's program. PyTorch's own folders are among them: it may run
/// from where it was built.
constexpr std::array kForeignFolders{
    std::string_view("/site-packages/"),
    std::string_view("/dist-packages/"),
    std::string_view("/lib/python"),
    std::string_view("/torch/distributed/"),
    std::string_view("/torch/autograd/"),
    std::string_view("/torch/nn/"),
    std::string_view("/torch/utils/"),
    std::string_view("/torch/_"),
    std::string_view("/torch/cuda/"),
    std::string_view("/torch/multiprocessing/"),
    std::string_view("/torch/serialization.py"),
};

}  // namespace

bool is_foreign_source(std::string_view path) { return has_any(path, kForeignFolders) || path.starts_with("<frozen "); }

bool is_report_of_signal(std::string_view error) {
  constexpr std::array kSignals{std::string_view("Segmentation fault"), std::string_view("Aborted"),
                                std::string_view("Bus error"), std::string_view("Floating point exception"),
                                std::string_view("Illegal instruction")};
  return error.starts_with(kFatal) &&
         std::find(kSignals.begin(), kSignals.end(), error.substr(kFatal.size())) != kSignals.end();
}

std::string_view without_rank_prefix(std::string_view line) {
  if (!line.starts_with("[rank") && !line.starts_with("[default")) return line;
  const auto close = line.find("]:");
  constexpr std::size_t kLongestPrefix = 16;
  if (close == std::string_view::npos || close > kLongestPrefix) return line;
  line.remove_prefix(close + 2);
  if (line.starts_with(" ")) line.remove_prefix(1);
  return line;
}

std::vector<std::string> without_ignored_errors(const std::vector<std::string>& all) {
  const Lines lines(all);
  // The lines of a traceback and its exception that begin at `first`; 0 where none begins there.
  const auto traceback_at = [&](std::size_t first) -> std::size_t {
    if (lines[first] != kHeader) return 0;
    std::size_t count = 1;
    while (is_indented(lines[first + count])) ++count;
    return count + 1;
  };
  // Cython prints the traceback before the line, too.
  const auto is_printed_again = [&](std::size_t first, std::size_t count) {
    if (count == 0 || !lines[first + count].starts_with(kIgnored)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (lines[first + i] != lines[first + count + 1 + i]) return false;
    }
    return true;
  };
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < lines.size();) {
    const std::size_t count = traceback_at(i);
    if (lines[i].starts_with(kIgnored)) {
      i += 1 + traceback_at(i + 1);
    } else if (is_printed_again(i, count)) {
      i += count;
    } else {
      kept.push_back(all[i++]);
    }
  }
  return kept;
}

std::optional<FoundError> find_python_error(const std::vector<std::string>& all) {
  const Lines lines(all);
  for (std::size_t i = lines.size(); i-- > 0;) {
    const std::string_view line = lines[i];
    std::optional<FoundError> found;
    if (line == kHeader || line == "Original Traceback (most recent call last):") {
      found = read_traceback(lines, i + 1);
    } else if (line.ends_with(kGroupHeader)) {
      found = read_group(lines, i);
    } else if (line.starts_with(kFatal)) {
      found = read_fatal_error(lines, i);
    } else if (names_syntax_error(line)) {
      found = read_syntax_error(lines, i);
    } else if (line.starts_with('/')) {
      found = read_interpreter_error(lines, i);
    }
    if (found) return found;
  }
  if (auto found = read_beheaded_report(lines)) return found;
  return read_beheaded_traceback(lines);
}

}  // namespace lrun::inline core
