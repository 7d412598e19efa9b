#include "run/stop_with_mpirun.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/small_file.h"
#include "cluster/mpi_job.h"
#include "process/descendants.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostEnvironmentBytes = std::size_t{8} << 20U;

/// Whether the process was executed with the variable. Empty: its environment cannot be read, or it has written a title
/// over it.
std::optional<bool> began_with(pid_t pid, std::string_view variable) {
  const auto variables = read_small_file(fmt::format("/proc/{}/environ", pid), kMostEnvironmentBytes);
  if (!variables || variables->empty() || variables->find(std::string(2, '\0')) != std::string::npos) return {};
  return ('\0' + *variables).find(fmt::format("{}{}=", '\0', variable)) != std::string::npos;
}

bool is_at_or_below(pid_t pid, pid_t ancestor) {
  while (pid > 1 && pid != ancestor) pid = parent_of(pid);
  return pid == ancestor;
}

}  // namespace

StopWithMpirun::StopWithMpirun(EventLoop& loop, const Environment& environment, const Guard& guard, MessageSink& sink) {
  const std::string_view variable = variable_of_mpi_tasks(environment);
  if (variable.empty()) return;
  pid_t task = guard.pid();  // its process that the starter has started
  pid_t starter = parent_of(task);
  std::optional<bool> is_of_task;
  while (starter > 1 && (is_of_task = began_with(starter, variable)).value_or(false)) {
    task = std::exchange(starter, parent_of(starter));
  }
  if (starter <= 1 || !is_of_task) return;
  starter_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, starter, 0)));  // CLOEXEC by itself
  if (!starter_) return;
  watch_ = loop.on_readable(starter_.get(), [this, task, starter, &environment, &guard, &sink] {
    watch_.cancel();
    if (guard.has_died() || !is_at_or_below(guard.pid(), task)) return;
    if (is_first_mpi_task_of_host(environment)) {
      sink.error(fmt::format("process {}, which started the tasks here, is gone: nothing goes on without it", starter));
    }
    // Not through the guard: a second TERM from there, as a manager sends it to all, takes the grace period away.
    ::kill(::getpid(), SIGTERM);
  });
}

}  // namespace lrun::launcher
