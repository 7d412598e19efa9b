#pragma once

#include <string>
#include <vector>

#include "plan/personality.h"
#include "plan/setting.h"

namespace lrun::launcher {

/// Signals that end a run when lrun receives them.
struct StopSignals {
  std::vector<int> numbers;
  std::string names;  ///< as given: what workers find in TORCHELASTIC_SIGNALS_TO_HANDLE

  bool operator==(const StopSignals&) const = default;
};

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT.
StopSignals default_stop_signals();

/// 'SIGTERM,SIGUSR1', for lrun also without 'SIG', or numbers; empty: the default. A name that cannot be used is one of
/// `warnings` for torchrun, as there.
/// \throws UserError  an unknown name, or one that no process can handle, for lrun.
StopSignals choose_stop_signals(const Setting<std::string>& asked, const Personality& personality,
                                std::vector<std::string>& warnings);

}  // namespace lrun::launcher
