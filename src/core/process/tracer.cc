#include "process/tracer.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/kernel_text.h"
#include "base/process_stat.h"
#include "base/small_file.h"

namespace lrun::inline core {
namespace {

constexpr std::size_t kMostBytes = 64 * 1024;

std::string status_text(pid_t pid) {
  return read_small_file(fmt::format("/proc/{}/status", pid), kMostBytes).value_or("");
}

}  // namespace

bool has_own_ids(pid_t pid) {
  const std::string status = status_text(pid);
  return only_number_of(status, "Uid:", ::geteuid()) && only_number_of(status, "Gid:", ::getegid());
}

std::string Tracer::text() const {
  return name.empty() ? fmt::format("tracer {}", pid) : fmt::format("tracer {} ({})", pid, name);
}

std::optional<Tracer> tracer_of(pid_t pid) {
  const auto tracer = static_cast<pid_t>(counter_named(status_text(pid), "TracerPid:").value_or(0));
  if (tracer == 0) return std::nullopt;
  const auto stat = stat_of_process(tracer);
  std::string name = stat ? stat->command : std::string();
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return letter < ' ' || letter == '\x7f'; }, '?');
  return Tracer{tracer, name};
}

bool is_dead(pid_t pid) {
  const auto stat = stat_of_process(pid);
  return stat && stat->state == 'Z' && stat->threads <= 1;
}

ExitStatus status_of_dead(pid_t pid) {
  const auto stat = stat_of_process(pid);
  if (!stat || (stat->exit_code == 0 && !has_own_ids(pid))) return {ExitStatus::Kind::kUnknown};
  const int code = stat->exit_code;
  if (WIFSIGNALED(code)) return {ExitStatus::Kind::kSignaled, WTERMSIG(code), WCOREDUMP(code) != 0};
  return {ExitStatus::Kind::kExited, WEXITSTATUS(code)};
}

}  // namespace lrun::inline core
