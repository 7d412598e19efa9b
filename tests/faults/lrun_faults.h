#pragma once

#include "faults/chance.h"
#include "faults/run_plan.h"

namespace lrun::test {

/// Runs in which lrun itself, and not a worker, meets a fault.
RunPlan stopped_worker(Chance& chance);
RunPlan signal_to_lrun(Chance& chance);
RunPlan guard_killed(Chance& chance);
RunPlan launcher_killed(Chance& chance);
RunPlan both_killed(Chance& chance);
/// SIGSTOP of one process of lrun, or both, and SIGKILL of one, in any order.
RunPlan one_stopped(Chance& chance);
RunPlan console_closed(Chance& chance);
RunPlan time_is_up(Chance& chance);
/// A signal or kill -9 at any time of a run that is started again and again.
RunPlan interrupted_restarts(Chance& chance);
/// Several faults of workers and of lrun at the same time: only a clean end is expected.
RunPlan anything(Chance& chance);

}  // namespace lrun::test
