#include "remote/srun_lines.h"

#include <algorithm>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostBytesOfLine = 4096;
constexpr std::string_view kOfSrun = "srun: ";
constexpr std::string_view kError = "srun: error: ";
constexpr std::string_view kTask = ": task";
/// srun answers with it to --cpu-bind=none, which is needed on all other clusters.
constexpr std::string_view kBindsNothing = "srun: cluster configuration lacks support for cpu binding";

std::optional<TaskEnd> failed_task_in(std::string_view line) {
  if (!line.starts_with(kError)) return std::nullopt;
  line.remove_prefix(kError.size());
  const std::size_t task = line.find(kTask);
  if (task == std::string_view::npos || task == 0 || line.substr(0, task).find(' ') != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view tasks = line.substr(task + kTask.size());  // ' 1: Killed', 's 1-2: Killed'
  const std::size_t colon = tasks.find(": ");
  if (colon == std::string_view::npos || colon + 2 == tasks.size()) return std::nullopt;
  return TaskEnd{std::string(line.substr(0, task)), std::string(tasks.substr(colon + 2))};
}

bool may_be_of_srun(std::string_view begun) {
  return begun.size() <= kMostBytesOfLine && begun.substr(0, kOfSrun.size()) == kOfSrun.substr(0, begun.size());
}

}  // namespace

std::string SrunLines::pass_on(std::string_view bytes) {
  std::string passed;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const bool is_whole = end != std::string_view::npos;
    line_ += bytes.substr(0, end);
    bytes.remove_prefix(is_whole ? end + 1 : bytes.size());
    is_of_another_ = is_of_another_ || !may_be_of_srun(line_);
    if (is_whole && !is_of_another_ && !failed_task_) failed_task_ = failed_task_in(line_);
    const bool is_hidden = is_whole && !is_of_another_ && line_ == kBindsNothing;
    if (is_whole && !is_hidden) line_ += '\n';
    if (is_hidden) line_.clear();
    if (is_whole || is_of_another_) passed += std::exchange(line_, {});
    if (is_whole) is_of_another_ = false;
  }
  return passed;
}

std::string SrunLines::rest() { return std::exchange(line_, {}); }

}  // namespace lrun::launcher
