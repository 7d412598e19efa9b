#include "run/stop_with_mpirun.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/small_file.h"
#include "cluster/mpi_job.h"
#include "process/descendants.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostEnvironmentBytes = std::size_t{8} << 20U;

/// The variables with which the process was executed.
bool began_with(pid_t pid, std::string_view variable) {
  const auto variables = read_small_file(fmt::format("/proc/{}/environ", pid), kMostEnvironmentBytes);
  return variables && ('\0' + *variables).find(fmt::format("{}{}=", '\0', variable)) != std::string::npos;
}

}  // namespace

StopWithMpirun::StopWithMpirun(EventLoop& loop, const Environment& environment, const Guard& guard, MessageSink& sink) {
  const std::string_view variable = variable_of_mpi_tasks(environment);
  if (variable.empty()) return;
  const pid_t parent = parent_of(guard.pid());
  pid_t starter = parent;  // the nearest one that is no part of the task
  while (starter > 1 && began_with(starter, variable)) starter = parent_of(starter);
  if (starter <= 1) return;
  starter_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, starter, 0)));  // CLOEXEC by itself
  if (!starter_) return;
  watch_ = loop.on_readable(starter_.get(), [this, parent, starter, &environment, &guard, &sink] {
    watch_.cancel();
    const bool is_of_task = parent == starter || parent_of(guard.pid()) == parent;
    if (!is_of_task || guard.has_died()) return;
    if (is_first_mpi_task_of_host(environment)) {
      sink.error(fmt::format("process {}, which started the tasks here, is gone: nothing goes on without it", starter));
    }
    ::kill(guard.pid(), SIGTERM);
  });
}

}  // namespace lrun::launcher
