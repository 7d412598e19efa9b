#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "faults/run_plan.h"

namespace lrun::test {

/// The outcome of a run, compared with the required one.
struct PlayedRun {
  std::vector<std::string> problems;         ///< each a broken promise; empty: all is well
  bool has_culprit = false;                  ///< a fault was put into a worker, or into what was to be executed
  bool named = false;                        ///< ... and lrun named it
  std::chrono::milliseconds to_the_end{0};   ///< from the last deed, or the start, to the end of lrun
  std::chrono::milliseconds to_the_last{0};  ///< from lrun's end to the end of the last process of the run
  std::string transcript;                    ///< the output and exit of lrun, shortened
};

/// Starts lrun, does the deeds of the plan, waits for the end (a minute at most) and checks everything that it left.
/// Several may be played at the same time, each by a thread.
PlayedRun play(const RunPlan& plan);

}  // namespace lrun::test
