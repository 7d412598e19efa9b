#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "faults/job_plan.h"

namespace lrun::test {

/// What a job came to, compared with what every job has to come to.
struct PlayedJob {
  std::vector<std::string> problems;        ///< each a broken promise; empty: all is well
  std::string end;                          ///< of the launchers that met with nothing, in a word
  int rounds = 0;                           ///< that made a step
  std::chrono::milliseconds to_the_end{0};  ///< from the last deed to the end of the last launcher
  std::string transcript;                   ///< what the launchers said
};

/// Starts the launchers of a plan, does its deeds, lets the training end and looks at everything. Several may be played
/// at the same time, each by a thread.
PlayedJob play(const JobPlan& plan);

}  // namespace lrun::test
