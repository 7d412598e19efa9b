// In: the stacks of ranks. Out: groups of ranks that are at the same place, with words for it. Called for `lrun stack`,
// and for the verdict about ranks that hang. Pure.
#include "inspect/stack_fold.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "verdict/collective_name.h"

namespace lrun::launcher {
namespace {

using Frames = std::vector<StackFrame>;

/// 'void a::(anonymous namespace)::f<int>(int, char const*)' → 'a::f()', as people name it.
std::string short_function(const std::string& function) {
  if (function.find('(') == std::string::npos) return function;
  const std::string_view name = plain_name(function);
  const auto end = static_cast<std::size_t>(name.data() + name.size() - function.data());
  std::size_t begin = end;
  for (int depth = 0; begin > 0 && (depth > 0 || function[begin - 1] != ' '); --begin) {
    const char letter = function[begin - 1];
    if (letter == '>' || letter == ')' || letter == '}') ++depth;
    if (letter == '<' || letter == '(' || letter == '{') --depth;
  }
  std::string text = function.substr(begin, end - begin);
  constexpr std::string_view kWithoutName = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = text.find(kWithoutName)) != std::string::npos;) text.erase(at, kWithoutName.size());
  return text + "()";
}

/// Innermost functions of a stack of C and C++ that only say that it waits, the program being below them: those of
/// these libraries, and of these names, since a debugger may know a line of the C library, but not its file.
constexpr std::array<std::string_view, 5> kSystemLibraries{"libc.so", "libc-", "libpthread", "libstdc++", "ld-"};
constexpr std::array<std::string_view, 3> kSystemPrefixes{"pthread_", "std::", "__"};
constexpr std::array<std::string_view, 8> kSystemNames{"clock_nanosleep", "nanosleep", "sleep", "usleep", "poll",
                                                       "syscall",         "select",    "??"};

bool is_plumbing(const StackFrame& frame) {
  const auto begins = [](std::string_view text) {
    return [text](std::string_view prefix) { return text.starts_with(prefix); };
  };
  const std::string function = short_function(frame.function);
  return std::any_of(kSystemLibraries.begin(), kSystemLibraries.end(), begins(frame.place)) ||
         std::any_of(kSystemPrefixes.begin(), kSystemPrefixes.end(), begins(function)) ||
         std::find(kSystemNames.begin(), kSystemNames.end(), frame.function) != kSystemNames.end();
}

/// Where liblrun waits in a backward pass, mostly.
constexpr std::string_view kSumOfGradients = "lrun::detail::GradientBuckets::wait(";

/// The frame of a collective, and its name: the outermost one of torch.distributed that the program called, as in
/// new_group(), which waits in a barrier, or else the innermost one whose name is known.
std::pair<std::size_t, std::string> find_collective(const Frames& frames) {
  std::size_t called = frames.size();
  for (std::size_t i = 0; i < frames.size() && frames[i].foreign; ++i) {
    if (frames[i].place.starts_with("distributed_c10d.py:")) called = i;
  }
  if (called < frames.size()) {
    std::string known = collective_name(frames[called].function);
    if (known.empty()) known = frames[called].function;
    return {called, std::move(known)};
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].function.starts_with(kSumOfGradients)) return {i, "all_reduce"};
    if (std::string name = collective_name(frames[i].function); !name.empty()) return {i, std::move(name)};
  }
  return {frames.size(), {}};
}

/// Functions of LibTorch and liblrun, and of the libraries below them.
constexpr std::array<std::string_view, 7> kLibraries{"lrun::", "torch::", "c10::", "c10d::", "at::", "gloo::", "std::"};

std::string frame_text(const StackFrame& frame) {
  const std::string function = short_function(frame.function);
  return frame.place.empty() ? function : function + " (" + frame.place + ")";
}

bool is_of_library(const StackFrame& frame) {
  const std::string function = short_function(frame.function);
  return frame.foreign || std::any_of(kLibraries.begin(), kLibraries.end(),
                                      [&](std::string_view name) { return function.starts_with(name); });
}

/// The place in the program that called it: 'train.py:40', or 'main (train)' where no line is known; empty: none is.
std::string call_place(const Frames& frames, std::size_t collective) {
  for (std::size_t i = collective + 1; i < frames.size(); ++i) {
    const StackFrame& frame = frames[i];
    if (is_of_library(frame) || frame.place.empty()) continue;
    if (frame.place.find(':') != std::string::npos) return frame.place;
    if (!is_plumbing(frame)) return frame_text(frame);
  }
  return {};
}

/// Python's call of the backward pass, in which a rank rests: for its own GPU, or for others in the sum of gradients.
std::size_t find_backward(const StackSample& sample) {
  const auto found = std::find_if(sample.python.begin(), sample.python.end(),
                                  [](const StackFrame& frame) { return frame.function == "_engine_run_backward"; });
  return sample.state == 'S' ? static_cast<std::size_t>(found - sample.python.begin()) : sample.python.size();
}

/// 'pipe:[42]' → 'a pipe': the number differs between ranks, which are at the same place all the same.
std::string kind_of(const std::string& target) {
  if (target.starts_with("pipe:")) return "a pipe";
  if (target.starts_with("socket:")) return "a socket";
  return target;
}

/// The caller of a system call: the innermost line of Python, otherwise the innermost function of the program.
std::string caller_text(const StackSample& sample) {
  if (!sample.python.empty()) return frame_text(sample.python.front());
  for (const StackFrame& frame : sample.native) {
    if (!is_plumbing(frame) && frame.function != sample.system_call) return frame_text(frame);
  }
  return {};
}

/// Two ranks with equal keys and equal words are at the same place.
std::string key_of(const StackSample& sample, bool collective) {
  const Frames& frames = sample.python.empty() ? sample.native : sample.python;
  std::size_t first = 0;
  if (collective) {
    const std::size_t found = find_collective(frames).first;
    first = found == frames.size() ? 0 : found + 1;
  }
  std::string key;
  for (std::size_t i = first; i < frames.size(); ++i) key += frames[i].function + " " + frames[i].place + "\n";
  return key;
}

struct Words {
  std::string verb;
  std::string verb_all;
  std::string place;
  bool collective = false;
};

/// A wait with a limit goes on under another name once a debugger or SIGCONT has interrupted it.
std::string call_text(const StackSample& sample) {
  if (sample.system_call != "restart_syscall") return sample.system_call + "()";
  for (const StackFrame& frame : sample.native) {
    if (frame.function != "??" && !frame.function.starts_with("__"))
      return std::string(plain_name(frame.function)) + "()";
  }
  return "a wait with a limit";
}

Words describe_kernel(const StackSample& sample, std::string call) {
  if (!sample.waits_for.empty()) call += " of " + kind_of(sample.waits_for);
  if (sample.state == 'D') call += " (uninterruptible)";
  if (const std::string caller = caller_text(sample); !caller.empty()) call += ", called from " + caller;
  return {"is in", "are in", std::move(call)};
}

Words describe(const StackSample& sample) {
  if (sample.has_ended()) return {"has ended", "have ended", ""};
  if (sample.state == 'T' || sample.state == 't') return {"is stopped", "are stopped", ""};
  for (const Frames* frames : {&sample.python, &sample.native}) {
    auto [found, name] = find_collective(*frames);
    if (name.empty()) continue;
    if (const std::string from = call_place(*frames, found); !from.empty()) name += " at " + from;
    return {"waits in", "wait in", std::move(name), true};
  }
  if (const std::size_t backward = find_backward(sample); backward < sample.python.size()) {
    const std::string from = call_place(sample.python, backward);
    return {"waits in", "wait in", from.empty() ? "backward" : "backward at " + from, true};
  }
  if (!sample.system_call.empty()) return describe_kernel(sample, call_text(sample));
  const std::string caller = caller_text(sample);
  if (sample.state == 'R') return {"runs", "run", caller};
  if (!sample.native.empty())
    return describe_kernel(sample, std::string(plain_name(sample.native.front().function)) + "()");
  if (!sample.wait_channel.empty()) return describe_kernel(sample, "the kernel (" + sample.wait_channel + ")");
  return {"sleeps", "sleep", caller.empty() ? "" : "in " + caller};
}

}  // namespace

std::vector<StackGroup> fold_stacks(const std::vector<StackSample>& samples) {
  std::vector<StackGroup> groups;
  std::vector<std::string> keys;
  std::vector<StackSample> ordered = samples;
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  for (StackSample& sample : ordered) {
    Words words = describe(sample);
    std::string key = words.verb + "\n" + words.place + "\n" + key_of(sample, words.collective);
    const auto known = std::find(keys.begin(), keys.end(), key);
    if (known != keys.end()) {
      groups[static_cast<std::size_t>(known - keys.begin())].ranks.push_back(sample.rank);
      continue;
    }
    keys.push_back(std::move(key));
    groups.push_back({{sample.rank},
                      std::move(words.verb),
                      std::move(words.verb_all),
                      std::move(words.place),
                      words.collective,
                      std::move(sample)});
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
  return groups;
}

}  // namespace lrun::launcher
