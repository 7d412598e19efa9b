// In: the output of eu-stack, gdb or py-spy. Out: frames of one thread, innermost first.
// Called by StackSampler. Pure, bounded: the output comes from a process that may print anything.
#include "inspect/stack_parsers.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/split.h"
#include "verdict/python_traceback.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kBlanks = " \t\r";

constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostFrameNameBytes = 300;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// 'read@@GLIBC_2.2.5' → 'read'.
std::string_view without_version(std::string_view symbol) { return symbol.substr(0, symbol.find('@')); }

void keep(std::vector<StackFrame>& frames, std::string_view function, std::string_view place, bool foreign = false) {
  if (frames.size() == kMostFrames) return;
  frames.push_back({std::string(function.empty() ? "??" : function.substr(0, kMostFrameNameBytes)),
                    std::string(place.substr(0, kMostFrameNameBytes)), foreign});
}

/// The rest of a line that begins with '#12  ' and perhaps an address; empty for other lines.
std::optional<std::string_view> after_frame_number(std::string_view line) {
  if (line.size() < 3 || line[0] != '#') return std::nullopt;
  const auto end = line.find_first_not_of("0123456789", 1);
  if (end == 1 || end == std::string_view::npos || line[end] != ' ') return std::nullopt;
  std::string_view rest = trimmed(line.substr(end), kBlanks);
  if (rest.starts_with("0x")) {
    const auto space = rest.find(' ');
    rest = space == std::string_view::npos ? std::string_view() : trimmed(rest.substr(space), kBlanks);
  }
  return rest;
}

/// Where gdb's list of arguments begins: at the last ' (' outside of brackets, so that '(anonymous namespace)::f(int)'
/// is a name.
std::size_t begin_of_arguments(std::string_view text) {
  int depth = 0;
  std::size_t found = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' && depth == 0 && i > 0 && text[i - 1] == ' ') found = i - 1;
    if (text[i] == '(' || text[i] == '<') ++depth;
    if ((text[i] == ')' || text[i] == '>') && depth > 0) --depth;
  }
  return found;
}

/// 'step (train.py:12)' → function and place; empty for anything else.
std::optional<StackFrame> py_spy_frame(std::string_view line) {
  const auto open = line.rfind(" (");
  if (!line.starts_with("    ") || open == std::string_view::npos || !line.ends_with(')')) return std::nullopt;
  const std::string_view place = line.substr(open + 2, line.size() - open - 3);
  const bool foreign = is_foreign_source(place) || place.starts_with("torch/");  // the path begins at the package
  return StackFrame{std::string(trimmed(line.substr(0, open), kBlanks)), std::string(base_name(place)), foreign};
}

}  // namespace

std::vector<StackFrame> parse_eu_stack(std::string_view text) {
  std::vector<StackFrame> frames;
  while (!text.empty()) {
    const auto rest = after_frame_number(cut(text, '\n'));
    if (!rest) continue;
    const auto dash = rest->starts_with("- ") ? 0 : rest->rfind(" - ");
    const bool has_module = dash != std::string_view::npos;
    const std::string_view module =
        has_module ? trimmed(rest->substr(dash + (dash == 0 ? 2 : 3)), kBlanks) : std::string_view();
    keep(frames, without_version(trimmed(rest->substr(0, dash), kBlanks)), base_name(module));
  }
  return frames;
}

std::vector<StackFrame> parse_gdb_backtrace(std::string_view text) {
  std::vector<StackFrame> frames;
  while (!text.empty()) {
    auto rest = after_frame_number(cut(text, '\n'));
    if (!rest) continue;
    if (rest->starts_with("in ")) rest->remove_prefix(3);
    std::string_view place;
    for (const std::string_view word : {" at ", " from "}) {
      const auto at = rest->rfind(word);
      if (at == std::string_view::npos) continue;
      place = base_name(trimmed(rest->substr(at + word.size()), kBlanks));
      rest = rest->substr(0, at);
      break;
    }
    keep(frames, without_version(rest->substr(0, begin_of_arguments(*rest))), place);
  }
  return frames;
}

std::vector<StackFrame> parse_py_spy(std::string_view text) {
  std::vector<StackFrame> first;
  std::vector<StackFrame> main_thread;
  int threads = 0;
  bool in_main = false;
  while (!text.empty()) {
    const std::string_view line = cut(text, '\n');
    if (line.starts_with("Thread ")) {
      ++threads;
      in_main = line.find("\"MainThread\"") != std::string_view::npos;
    } else if (const auto frame = py_spy_frame(line)) {
      if (threads == 1) keep(first, frame->function, frame->place, frame->foreign);
      if (in_main) keep(main_thread, frame->function, frame->place, frame->foreign);
    }
  }
  return main_thread.empty() ? first : main_thread;
}

}  // namespace lrun::launcher
