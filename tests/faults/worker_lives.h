#pragma once

#include <string>

#include "faults/chance.h"
#include "faults/run_plan.h"

namespace lrun::test {

/// How a culprit ends: the step of its script, and what the verdict must say of it.
struct Ending {
  std::string step;
  std::string ending;  ///< 'exited' or 'signaled'
  int value = 0;
};

/// A run in which nobody fails: world size, options, and a life for every worker. Some end early with code 0 where that
/// is wanted; some obey no request to end.
RunPlan quiet_plan(Chance& chance, std::string kind, int least_workers = 1, bool early_ends = true);

std::string& script_of(RunPlan& plan, int rank);
/// One more attempt's script to those of a worker.
void add_attempt(std::string& scripts, const std::string& script);

/// A signal that ends a process by default, but for SIGSTOP's kind.
int ending_signal(Chance& chance);
Ending random_ending(Chance& chance);
/// What a culprit may do before its end: steps, each with a comma behind it; empty: nothing.
std::string prelude(Chance& chance);

/// The run is to end with this worker named.
void blame(RunPlan& plan, int rank, const Ending& ending);

}  // namespace lrun::test
