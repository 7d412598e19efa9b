#pragma once

#include <string>
#include <vector>

#include "report/message_sink.h"

namespace lrun::launcher {

/// The step of a srun that lrun watches.
struct WatchedStep {
  std::string token;       ///< that the launchers were given
  std::string launcher;    ///< path of the lrun that is each of its tasks
  bool needs_all = false;  ///< the run cannot do without a node, and its launchers tell when it has begun
};

/// Runs srun as a child and waits for it. It does not become srun, for two reasons. Only the job's launchers report the
/// outcome of a job that has lost nodes (OutcomeReader). And only srun learns that a launcher could not be started:
/// then the step is ended where the run needs all nodes, and the others would wait. Signals sent to this lrun go to
/// srun, which ends with it.
/// \param path  of srun
/// \param sink  gets what srun and the launchers print on stderr
/// \return the job's code; srun's own, or 128 + its signal, where no launcher reported one.
/// \throws std::system_error  srun cannot be started.
int watch_srun_step(const std::string& path, const std::vector<std::string>& command, const WatchedStep& step,
                    MessageSink& sink);

}  // namespace lrun::launcher
