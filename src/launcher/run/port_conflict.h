#pragma once

#include <string>

#include "plan/launch_plan.h"

namespace lrun::launcher {

/// The text about a port that another process listens on.
struct PortConflict {
  std::string what;  ///< the error
  std::string hint;  ///< what to type
};

/// Finds out what listens on the port of `plan`'s rendezvous or store. Takes a second at most.
/// \param secret  that the launchers of the job share; empty: none
/// \param error   the refusal of the kernel: 'cannot listen on ...'
PortConflict explain_port_conflict(const LaunchPlan& plan, const std::string& secret, const std::string& error);

}  // namespace lrun::launcher
