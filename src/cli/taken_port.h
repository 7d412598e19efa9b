#pragma once

#include <string>

#include "plan/launch_plan.h"

namespace lrun {

/// What is said about a port that somebody else listens on.
struct TakenPort {
  std::string why;   ///< behind the error: '; other launchers meet there'; empty: nobody knows
  std::string hint;  ///< what to type
};

/// Asks whoever has the port of `plan`'s meeting or store who it is. Takes a second at most.
/// \param secret  that the launchers of the job share; empty: none
TakenPort explain_taken_port(const LaunchPlan& plan, const std::string& secret);

}  // namespace lrun
