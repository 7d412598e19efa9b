#pragma once

#include <string>

#include "plan/launch_plan.h"

namespace lrun::launcher {

/// What is said about a port that somebody else listens on.
struct PortConflict {
  std::string why;   ///< behind the error: '; other launchers meet there'; empty: nobody knows
  std::string hint;  ///< what to type
};

/// Asks whoever has the port of `plan`'s meeting or store who it is. Takes a second at most.
/// \param secret  that the launchers of the job share; empty: none
PortConflict explain_port_conflict(const LaunchPlan& plan, const std::string& secret);

}  // namespace lrun::launcher
