// In: the last lines of a worker. Out: the error among them. explain() calls.
#include "verdict/printed_error.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "verdict/has_any.h"
#include "verdict/native_error.h"
#include "verdict/python_traceback.h"

namespace lrun::inline core {
namespace {

constexpr std::string_view kThreadsLeft = "terminate called without an active exception";

/// The text of an exception may look like a native error: one that begins inside the traceback belongs to it. And a
/// Python exception may end a program while its threads still run, which C++ reports as kThreadsLeft.
bool belongs_to(const FoundError& python, const FoundError& native) {
  return native.line <= python.line + 2 || native.printed.error == kThreadsLeft;
}

/// Torch adds these to every error of CUDA.
constexpr std::array kAdviceOnCuda{
    std::string_view("Search for `cuda"),
    std::string_view("CUDA kernel errors might be asynchronously reported"),
    std::string_view("For debugging consider passing CUDA_LAUNCH_BLOCKING"),
    std::string_view("Compile with `TORCH_USE_CUDA_DSA`"),
    std::string_view("Device-side assertion tracking was not enabled"),
};

/// True for lines of call stacks, for lines that libraries print whenever a process ends, and for advice.
bool is_noise(std::string_view line) {
  const std::string_view text = without_rank_prefix(line);
  for (const std::string_view beginning : {"frame #", "wandb: ", "[W", "Exception raised from "}) {
    if (text.starts_with(beginning)) return true;
  }
  if (has_any(text, kAdviceOnCuda)) return true;
  return line.find_first_not_of(" \t") == std::string_view::npos || line.starts_with(' ');
}

/// True when few lines follow the error up to `end`. After many lines the program must have handled it and gone on.
bool is_the_end(const std::optional<FoundError>& found, const std::vector<std::string>& lines, std::size_t end) {
  if (!found) return false;
  std::size_t after = 0;
  for (std::size_t i = found->line + 1; i < end && after <= found->most_after; ++i) {
    const bool of_the_report = std::find(found->printed.lines.begin(), found->printed.lines.end(),
                                         without_rank_prefix(lines[i])) != found->printed.lines.end();
    if (!of_the_report && !is_noise(lines[i])) ++after;
  }
  return after <= found->most_after;
}

PrintedError last_lines(const std::vector<std::string>& lines) {
  PrintedError printed;
  for (std::size_t i = lines.size(); i-- > 0 && printed.lines.size() < PrintedError::kMostLines;) {
    if (printed.lines.empty() && lines[i].empty()) continue;
    printed.lines.insert(printed.lines.begin(), lines[i]);
  }
  return printed;
}

/// The error that a program printed before it aborted, with the place in Python that faulthandler reported after it.
PrintedError located(PrintedError why, const PrintedError& where) {
  if (why.location.empty()) why.location = where.location;
  for (std::size_t i = 1; i < where.lines.size() && why.lines.size() < PrintedError::kMostLines; ++i) {
    why.lines.push_back(where.lines[i]);
  }
  return why;
}

/// 'CUDA error: an illegal memory access was encountered'; empty for other errors.
std::string_view cuda_error_in(std::string_view error) {
  const auto begin = error.find("CUDA error: ");
  return begin == std::string_view::npos ? std::string_view() : error.substr(begin);
}

/// After an error of CUDA every later call has it too: the exception ends Python, and then a destructor or NCCL's
/// watchdog aborts the process with the same error. The exception has the place.
std::optional<FoundError> exception_before(const FoundError& abort, const std::vector<std::string>& lines) {
  const std::string_view cause = cuda_error_in(abort.printed.error);
  if (cause.empty()) return std::nullopt;
  const auto end = lines.begin() + static_cast<std::ptrdiff_t>(abort.line);
  std::optional<FoundError> earlier = find_python_error({lines.begin(), end});
  const bool same = earlier && cuda_error_in(earlier->printed.error) == cause;
  return same && is_the_end(earlier, lines, abort.line) ? earlier : std::nullopt;
}

/// Puts what a kernel asserted in front: the exception says only that something was. The kernel prints it before the
/// traceback, once for each thread.
PrintedError with_assertion_of_kernel(PrintedError printed, const std::vector<std::string>& lines) {
  if (printed.error.find("device-side assert triggered") == std::string::npos) return printed;
  const auto asserted = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
    return line.find(": block: [") != std::string::npos && line.find("] Assertion `") != std::string::npos;
  });
  if (asserted != lines.rend()) printed.lines.emplace(printed.lines.begin(), without_rank_prefix(*asserted));
  return printed;
}

}  // namespace

PrintedError find_printed_error(const std::vector<std::string>& all, bool may_be_an_exception) {
  const std::vector<std::string> lines = without_ignored_errors(all);
  std::optional<FoundError> python = find_python_error(lines);
  std::optional<FoundError> native = find_native_error(lines);
  const bool fatal = python && python->most_after == FoundError::kNoLimit;
  const bool signal = python && is_report_of_signal(python->printed.error);
  if (!is_the_end(python, lines, lines.size()) || (!may_be_an_exception && !fatal)) python.reset();
  const bool before_signal = signal && native && native->line < python->line;
  if (!is_the_end(native, lines, before_signal ? python->line : lines.size())) native.reset();
  if (native) {
    if (auto earlier = exception_before(*native, lines)) {
      return with_assertion_of_kernel(std::move(earlier->printed), lines);
    }
  }
  if (signal && python && native) return located(std::move(native->printed), python->printed);
  if (python && (!native || belongs_to(*python, *native))) {
    return with_assertion_of_kernel(std::move(python->printed), lines);
  }
  if (native) return std::move(native->printed);
  return last_lines(all);
}

}  // namespace lrun::inline core
