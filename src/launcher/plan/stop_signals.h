#pragma once

#include <string>
#include <vector>

#include "plan/personality.h"
#include "plan/setting.h"

namespace lrun::launcher {

/// Signals that end a run when lrun receives them.
struct StopSignals {
  std::vector<int> numbers;
  std::string names;  ///< as given, for TORCHELASTIC_SIGNALS_TO_HANDLE of workers

  bool operator==(const StopSignals&) const = default;
};

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT.
StopSignals default_stop_signals();

/// Reads 'SIGTERM,SIGUSR1', for lrun also 'TERM' and numbers. Empty: the default. For torchrun a name that cannot be
/// used is one of `warnings`, as there. \throws UserError  for lrun: an unknown name, or one that no process can handle
StopSignals choose_stop_signals(const Setting<std::string>& asked, const Personality& personality,
                                std::vector<std::string>& warnings);

}  // namespace lrun::launcher
