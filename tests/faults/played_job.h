#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "faults/job_plan.h"

namespace lrun::test {

/// The outcome of a job, compared with the required one.
struct PlayedJob {
  std::vector<std::string> problems;        ///< each a broken promise; empty: all is well
  std::string end;                          ///< of the launchers without a deed, in a word
  int rounds = 0;                           ///< that made a step
  std::chrono::milliseconds to_the_end{0};  ///< from the last deed to the end of the last launcher
  std::string transcript;                   ///< the output of the launchers
};

/// Starts the launchers of a plan, does its deeds, lets the training end and checks everything. Several may be played
/// at the same time, each by a thread.
PlayedJob play(const JobPlan& plan);

}  // namespace lrun::test
