#pragma once

#include <string>

#include "faults/chance.h"
#include "faults/run_plan.h"

namespace lrun::test {

/// How a culprit ends: the step of its script, and the facts that the verdict must name.
struct Ending {
  std::string step;
  std::string ending;  ///< 'exited' or 'signaled'
  int value = 0;
};

/// A run without a failure: world size, options, and a script for every worker. Some may end early with code 0; some
/// ignore requests to end.
RunPlan quiet_plan(Chance& chance, std::string kind, int least_workers = 1, bool early_ends = true);

std::string& script_of(RunPlan& plan, int rank);
/// One more attempt's script to those of a worker.
void add_attempt(std::string& scripts, const std::string& script);

/// A signal that ends a process by default, but for SIGSTOP's kind.
int ending_signal(Chance& chance);
Ending random_ending(Chance& chance);
/// Steps that a culprit may take before its end, each with a comma behind it; empty: none.
std::string prelude(Chance& chance);

/// The run is to end with this worker named.
void blame(RunPlan& plan, int rank, const Ending& ending);

}  // namespace lrun::test
