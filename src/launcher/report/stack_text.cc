// In: groups of ranks with equal stacks. Out: the text, the JSON or one sentence about them, and groups from such JSON.
// Called by `lrun stack` and wherever lrun shows where ranks are.
#include "report/stack_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/json.h"
#include "base/nearest.h"
#include "base/rank_list.h"
#include "base/shortened.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostFrames = 16;
constexpr std::size_t kMostColumns = 140;

std::string safe(const std::string& text) { return shortened(terminal_safe(text), kMostColumns); }

/// 'wait in all_reduce'.
std::string doing(const StackGroup& group, bool several) {
  const std::string& verb = several ? group.verb_all : group.verb;
  return group.place.empty() ? verb : verb + " " + safe(group.place);
}

/// A frame of the Python interpreter, which Python's own stack shows better.
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
    if (lines.empty() || lines.back() != line) lines.push_back(std::move(line));  // recursion is shown once
  }
  return lines;
}

/// '  Python  all_reduce (distributed_c10d.py:3075)' and below it the callers.
std::string frames_text(std::string_view title, const std::vector<std::string>& lines, std::size_t most = kMostFrames) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), most); ++i) {
    text += fmt::format("  {:8}{}\n", i == 0 ? title : "", lines[i]);
  }
  if (lines.size() > most) text += fmt::format("  {:8}… {} more\n", "", lines.size() - most);
  return text;
}

/// The other threads of Python, equal ones once.
std::string threads_text(const std::vector<PythonStack>& threads) {
  constexpr std::size_t kMostThreads = 8;
  constexpr std::size_t kMostThreadFrames = 6;
  std::vector<PythonStack> shown;
  for (const PythonStack& thread : threads) {
    if (!thread.frames.empty() && std::find(shown.begin(), shown.end(), thread) == shown.end()) shown.push_back(thread);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(shown.size(), kMostThreads); ++i) {
    std::vector<std::string> lines = frame_lines(shown[i].frames, false);
    if (shown[i].holds_gil) lines.front() += ", holds the GIL";
    text += frames_text("thread", lines, kMostThreadFrames);
  }
  if (shown.size() > kMostThreads) text += fmt::format("  {:8}… {} more threads\n", "", shown.size() - kMostThreads);
  return text;
}

std::string_view state_text(char state) {
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
  std::string text = fmt::format("  kernel  {}", state_text(sample.state));
  if (!sample.system_call.empty()) text += fmt::format(" in {}()", safe(sample.system_call));
  if (!sample.waits_for.empty()) text += " of " + safe(sample.waits_for);
  if (!sample.wait_channel.empty()) text += fmt::format(", wait channel {}", safe(sample.wait_channel));
  return text + "\n";
}

std::string group_text(const StackGroup& group) {
  const StackSample& sample = group.example;
  const bool several = group.ranks.size() > 1;
  const std::string where = sample.host.empty() ? std::string() : " on " + safe(sample.host);
  if (sample.state == 0) return fmt::format("{}: {}\n", ranks_text(group.ranks), doing(group, several));
  const std::string whose = fmt::format("rank {}, pid {}{} ({}, {})", sample.rank, sample.pid, where,
                                        safe(sample.command), counted(sample.threads, "thread"));
  std::string text = several
                         ? fmt::format("{} {}; shown is {}\n", ranks_text(group.ranks), doing(group, several), whose)
                         : fmt::format("{}: {}\n", whose, doing(group, several));
  return text + kernel_line(sample) + frames_text("Python", frame_lines(sample.python, false)) +
         threads_text(sample.other_threads) + frames_text("native", frame_lines(sample.native, !sample.python.empty()));
}

std::string problems_text(const std::vector<StackSample>& samples) {
  std::map<std::string, std::vector<int>> ranks_of;
  for (const StackSample& sample : samples) {
    for (const std::string& problem : sample.problems) ranks_of[problem].push_back(sample.rank);
  }
  std::string text;
  for (const auto& [problem, ranks] : ranks_of) {
    text += fmt::format("{}{}: {}\n", text.empty() ? "\n" : "", ranks_text(ranks), safe(problem));
  }
  return text;
}

nlohmann::json json_of(const std::vector<StackFrame>& frames) {
  nlohmann::json list = nlohmann::json::array();
  for (const StackFrame& frame : frames) {
    list.push_back({{"function", frame.function}, {"place", frame.place}, {"foreign", frame.foreign}});
  }
  return list;
}

nlohmann::json json_of(const std::vector<PythonStack>& threads) {
  nlohmann::json list = nlohmann::json::array();
  for (const PythonStack& thread : threads) {
    list.push_back({{"holds_gil", thread.holds_gil}, {"python", json_of(thread.frames)}});
  }
  return list;
}

nlohmann::json json_of(const StackSample& sample) {
  nlohmann::json json{{"rank", sample.rank},
                      {"pid", sample.pid},
                      {"command", sample.command},
                      {"state", sample.state == 0 ? std::string() : std::string(1, sample.state)},
                      {"threads", sample.threads},
                      {"activity", sample.activity},
                      {"system_call", sample.system_call},
                      {"waits_for", sample.waits_for},
                      {"wait_channel", sample.wait_channel},
                      {"python", json_of(sample.python)},
                      {"native", json_of(sample.native)},
                      {"problems", sample.problems},
                      {"other_threads", json_of(sample.other_threads)},
                      {"host", sample.host}};
  if (!sample.alike.empty()) json["alike"] = sample.alike;
  return json;
}

std::vector<StackFrame> frames_from(const nlohmann::json& list) {
  std::vector<StackFrame> frames;
  for (const auto& frame : list) {
    frames.push_back({frame.at("function").get<std::string>(), frame.at("place").get<std::string>(),
                      frame.at("foreign").get<bool>()});
  }
  return frames;
}

StackSample sample_from(const nlohmann::json& json) {
  const auto text = [&json](const char* name) { return json.at(name).get<std::string>(); };
  StackSample sample{.rank = json_integer(json.at("rank")), .pid = json_integer(json.at("pid"))};
  sample.command = text("command");
  sample.state = text("state").empty() ? '\0' : text("state").front();
  sample.threads = json_integer(json.at("threads"));
  if (json.contains("activity"))
    sample.activity = json_integer<std::int64_t>(json.at("activity"));  // an older lrun lacks it
  sample.system_call = text("system_call");
  sample.waits_for = text("waits_for");
  sample.wait_channel = text("wait_channel");
  sample.python = frames_from(json.at("python"));
  sample.native = frames_from(json.at("native"));
  sample.problems = json.at("problems").get<std::vector<std::string>>();
  for (const auto& rank : json.value("alike", nlohmann::json::array())) sample.alike.push_back(json_integer(rank));
  sample.host = json.value("host", std::string());  // an older lrun lacks it
  for (const auto& thread : json.value("other_threads", nlohmann::json::array())) {
    sample.other_threads.push_back({thread.at("holds_gil").get<bool>(), frames_from(thread.at("python"))});
  }
  return sample;
}

/// Empty: there are too many.
std::optional<std::vector<StackSample>> samples_from(const nlohmann::json& ranks) {
  constexpr std::size_t kMostRanks = 4096;
  std::vector<StackSample> samples;
  for (const auto& rank : ranks) {
    if (samples.size() == kMostRanks) return std::nullopt;
    samples.push_back(sample_from(rank));
  }
  return samples;
}

RankPlace place_of(const StackGroup& group) {
  return {.verb = group.verb,
          .verb_all = group.verb_all,
          .place = safe(group.place),
          .waits_for_others = group.waits_for_others,
          .count = static_cast<int>(group.ranks.size()),
          .first_rank = group.ranks.front()};
}

}  // namespace

std::string stacks_in_a_sentence(const std::vector<StackGroup>& groups) {
  std::vector<RankPlace> places;
  for (const StackGroup& group : groups) places.push_back(place_of(group));
  return describe_places(std::move(places));
}

std::vector<RankPlace> places_of(const std::vector<StackGroup>& groups) {
  std::vector<RankPlace> places;
  for (const StackGroup& group : groups) {
    const char state = group.example.state;
    if (state != 0 && state != 'Z' && state != 'X') places.push_back(place_of(group));
  }
  return merge_places({}, places);
}

std::string stack_text(const std::vector<StackSample>& samples) {
  const std::vector<StackGroup> groups = fold_stacks(samples);
  std::string text = groups.size() > 1 ? stacks_in_a_sentence(groups) + "\n" : std::string();
  for (const StackGroup& group : groups) text += (text.empty() ? "" : "\n") + group_text(group);
  return text + problems_text(samples);
}

std::string stack_json(const std::vector<StackSample>& samples) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const StackSample& sample : samples) ranks.push_back(json_of(sample));
  return nlohmann::json{{"schema", 1}, {"summary", stacks_in_a_sentence(fold_stacks(samples))}, {"ranks", ranks}}.dump(
             1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

std::optional<std::vector<StackSample>> stack_samples_from_json(std::string_view text) {
  try {
    return samples_from(nlohmann::json::parse(text).at("ranks"));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string to_json_within(LauncherStacks stacks, std::size_t most) {
  constexpr std::size_t kMostKept = 64;
  for (std::size_t most_frames = kMostKept;; most_frames /= 2) {
    nlohmann::json ranks = nlohmann::json::array();
    for (StackSample& sample : stacks.samples) {
      sample.python.resize(std::min(sample.python.size(), most_frames));
      sample.native.resize(std::min(sample.native.size(), most_frames));
      if (most_frames < kMostKept) sample.other_threads.clear();
      ranks.push_back(json_of(sample));
    }
    std::string text = json_text({{"schema", 1},
                                  {"host", stacks.host},
                                  {"pid", stacks.pid},
                                  {"count", stacks.ranks},
                                  {"problem", shortened(stacks.problem, kMostColumns)},
                                  {"still_ms", stacks.still_ms},
                                  {"outside_store", stacks.outside_store},
                                  {"ranks", ranks}});
    if (text.size() <= most || stacks.samples.empty()) return text;
    if (most_frames == 1) stacks.samples.resize(stacks.samples.size() / 2);
    most_frames = std::max<std::size_t>(most_frames, 2);
  }
}

std::optional<LauncherStacks> launcher_stacks_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    std::optional<std::vector<StackSample>> samples = samples_from(json.at("ranks"));
    if (!samples) return std::nullopt;
    LauncherStacks stacks{.host = json.at("host").get<std::string>(),
                          .pid = json_integer(json.at("pid")),
                          .ranks = json_integer(json.at("count")),
                          .samples = *std::move(samples),
                          .problem = json.at("problem").get<std::string>(),
                          .still_ms = json.value("still_ms", std::int64_t{0}),  // a head of an older lrun lacks it
                          .outside_store = json.value("outside_store", std::vector<int>())};
    for (StackSample& sample : stacks.samples) sample.host = stacks.host;
    return stacks;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
