#pragma once

#include <string>
#include <vector>

#include "report/message_sink.h"

namespace lrun::launcher {

/// Runs srun as a child and waits for it. It does not become srun, since only the job's launchers report the outcome of
/// a job that has lost nodes (OutcomeReader). Signals sent to this lrun go to srun, which ends with it.
/// \param path   of srun
/// \param sink   gets what srun and the launchers print on stderr
/// \param token  that the launchers were given
/// \return the job's code; srun's own, or 128 + its signal, where no launcher reported one.
/// \throws std::system_error  srun cannot be started.
int watch_srun_step(const std::string& path, const std::vector<std::string>& command, const std::string& token,
                    MessageSink& sink);

}  // namespace lrun::launcher
