#include "report/stack_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/rank_list.h"
#include "base/shortened.h"
#include "logs/terminal_text.h"

namespace lrun {
namespace {

constexpr std::size_t kMostFrames = 16;
constexpr std::size_t kMostGroupsInSentence = 6;
constexpr std::size_t kMostColumns = 140;

std::string safe(const std::string& text) { return shortened(terminal_safe(text), kMostColumns); }

/// 'wait in all_reduce'.
std::string doing(const StackGroup& group, bool several) {
  const std::string& verb = several ? group.verb_all : group.verb;
  return group.place.empty() ? verb : verb + " " + safe(group.place);
}

/// A frame of the Python interpreter, which Python's own stack tells better.
bool is_interpreter(const StackFrame& frame) {
  return frame.place.starts_with("python") || frame.place.starts_with("libpython") ||
         frame.function.starts_with("_Py") || frame.function.starts_with("Py");
}

/// The frames that people want to see: those of the interpreter are one where Python's stack is known.
std::vector<std::string> frame_lines(const std::vector<StackFrame>& frames, bool hide_interpreter) {
  std::vector<std::string> lines;
  for (const StackFrame& frame : frames) {
    if (hide_interpreter && is_interpreter(frame)) {
      lines.emplace_back("the interpreter");
      break;
    }
    const std::string place = frame.place.empty() ? "" : fmt::format(" ({})", frame.place);
    std::string line = safe(frame.function + place);
    if (lines.empty() || lines.back() != line) lines.push_back(std::move(line));  // recursion is told once
  }
  return lines;
}

/// '  Python  all_reduce (distributed_c10d.py:3075)' and below it the callers.
std::string frames_text(std::string_view title, const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostFrames); ++i) {
    text += fmt::format("  {:8}{}\n", i == 0 ? title : "", lines[i]);
  }
  if (lines.size() > kMostFrames) text += fmt::format("  {:8}… {} more\n", "", lines.size() - kMostFrames);
  return text;
}

std::string_view state_in_words(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "uninterruptible";
    case 'T':
    case 't':
      return "stopped";
    case 'I':
      return "idle";
    default:
      return "ended";
  }
}

std::string kernel_line(const StackSample& sample) {
  std::string text = fmt::format("  kernel  {}", state_in_words(sample.state));
  if (!sample.system_call.empty()) text += fmt::format(" in {}()", sample.system_call);
  if (!sample.waits_for.empty()) text += " of " + safe(sample.waits_for);
  if (!sample.wait_channel.empty()) text += fmt::format(", wait channel {}", safe(sample.wait_channel));
  return text + "\n";
}

std::string group_text(const StackGroup& group) {
  const StackSample& sample = group.example;
  const bool several = group.ranks.size() > 1;
  const std::string whose =
      several ? fmt::format("{}; below rank {}, pid {}", ranks_in_words(group.ranks), sample.rank, sample.pid)
              : fmt::format("rank {}, pid {}", sample.rank, sample.pid);
  if (sample.state == 0) return fmt::format("\n{}: {}\n", ranks_in_words(group.ranks), doing(group, several));
  std::string text = fmt::format("\n{} ({}, {} {}): {}\n", whose, safe(sample.command), sample.threads,
                                 sample.threads == 1 ? "thread" : "threads", doing(group, several));
  return text + kernel_line(sample) + frames_text("Python", frame_lines(sample.python, false)) +
         frames_text("native", frame_lines(sample.native, !sample.python.empty()));
}

std::string problems_text(const std::vector<StackSample>& samples) {
  std::map<std::string, std::vector<int>> ranks_of;
  for (const StackSample& sample : samples) {
    for (const std::string& problem : sample.problems) ranks_of[problem].push_back(sample.rank);
  }
  std::string text;
  for (const auto& [problem, ranks] : ranks_of) {
    text += fmt::format("{}{}: {}\n", text.empty() ? "\n" : "", ranks_in_words(ranks), safe(problem));
  }
  return text;
}

nlohmann::json json_of(const std::vector<StackFrame>& frames) {
  nlohmann::json list = nlohmann::json::array();
  for (const StackFrame& frame : frames) list.push_back({{"function", frame.function}, {"place", frame.place}});
  return list;
}

nlohmann::json json_of(const StackSample& sample) {
  return {{"rank", sample.rank},
          {"pid", sample.pid},
          {"command", sample.command},
          {"state", sample.state == 0 ? std::string() : std::string(1, sample.state)},
          {"threads", sample.threads},
          {"system_call", sample.system_call},
          {"waits_for", sample.waits_for},
          {"wait_channel", sample.wait_channel},
          {"python", json_of(sample.python)},
          {"native", json_of(sample.native)},
          {"problems", sample.problems}};
}

}  // namespace

std::string stacks_in_a_sentence(const std::vector<StackGroup>& groups) {
  std::string text;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const StackGroup& group = groups[i];
    if (i >= kMostGroupsInSentence) {
      left_out += group.ranks.size();
      continue;
    }
    const bool several = group.ranks.size() > 1;
    const std::string who =
        several ? fmt::format("{} ranks", group.ranks.size()) : fmt::format("rank {}", group.ranks.front());
    text += (text.empty() ? "" : "; ") + who + " " + doing(group, several);
  }
  if (left_out > 0) text += fmt::format("; {} more ranks elsewhere", left_out);
  return text;
}

std::string stack_text(const std::vector<StackSample>& samples) {
  const std::vector<StackGroup> groups = fold_stacks(samples);
  std::string text = stacks_in_a_sentence(groups) + "\n";
  for (const StackGroup& group : groups) text += group_text(group);
  return text + problems_text(samples);
}

std::string stack_json(const std::vector<StackSample>& samples) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const StackSample& sample : samples) ranks.push_back(json_of(sample));
  return nlohmann::json{{"schema", 1}, {"summary", stacks_in_a_sentence(fold_stacks(samples))}, {"ranks", ranks}}.dump(
             1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace lrun
