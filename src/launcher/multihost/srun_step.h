#pragma once

#include <string>
#include <vector>

#include "report/message_sink.h"

namespace lrun::launcher {

/// Runs srun and waits for it, in the place of becoming it: what the job came to without nodes that were lost is told
/// by its launchers (OutcomeReader) and not by srun's code. Signals sent to this lrun go to srun, which ends with it.
/// \param path   of srun
/// \param sink   gets what srun and the launchers print on stderr
/// \param token  that the launchers were given
/// \return the job's code; srun's own, or 128 + its signal, where no launcher told it.
/// \throws std::system_error  srun cannot be started.
int watch_srun_step(const std::string& path, const std::vector<std::string>& command, const std::string& token,
                    MessageSink& sink);

}  // namespace lrun::launcher
