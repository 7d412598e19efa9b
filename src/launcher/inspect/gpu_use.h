#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/duration.h"
#include "inspect/run_status.h"

namespace lrun::launcher {

/// A process and what it uses of one GPU.
struct ProcessOnGpu {
  pid_t pid = 0;
  GpuUse use;

  bool operator==(const ProcessOnGpu&) const = default;
};

/// The processes that compute on this machine's GPUs, as NVIDIA's driver names them. A child process asks it, so that a
/// driver that hangs or crashes gives none, after `limit` at the latest; without a trace of a driver no process is
/// started. One thread.
std::vector<ProcessOnGpu> read_gpu_use(Duration limit);

/// Gives every running worker what its own process and those below it use, GPU by GPU. Where one of them uses an amount
/// that is not known, the sum is not known either.
/// \param parent_of  the parent of a process; 0: there is none
void add_gpu_use(RunStatus& status, const std::vector<ProcessOnGpu>& processes,
                 const std::function<pid_t(pid_t)>& parent_of);

}  // namespace lrun::launcher
