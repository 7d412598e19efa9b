#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/program_facts.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"
#include "plan/personality.h"

namespace lrun::launcher {

/// What is executed, before macros: the program itself, or Python in front of it.
///
/// Python runs a module (-m), a name that ends in '.py', a file without execute permission whose first line is
/// '#!…python…', and under torchrun's personality every program; --no-python executes whatever it is. The interpreter
/// is $PYTHON_EXEC, else 'python3', always with -u (unbuffered).
/// \throws UserError  --module together with --no-python; --no-python where a program is to get its local rank as an
/// argument that only Python programs were ever given; --use-env where torchrun, which has no such option, is meant.
std::vector<std::string> worker_command(const LaunchRequest& request, const Environment& environment,
                                        const ProgramFacts& program);

/// Puts an argument with the local rank behind PROGRAM, which `arguments` words follow, where its launcher gives it
/// one: DeepSpeed's '--local_rank=N', equal to LOCAL_RANK (0 where each worker sees only its own GPU), or
/// '--local-rank=N' of torch.distributed.launch. It holds the macro that expand_macros() replaces.
void add_local_rank(const LaunchPlan& plan, const LaunchRequest& request, std::vector<std::string>& argv);

/// `argv` for one worker: in every argument but the first '${local_rank}' and '$local_rank' become the number, and
/// '$$local_rank' is the escape that gives '$local_rank'. Other names ('$HOME', '$local_rank_x') and dollars stay;
/// under torchrun's personality every '$$' becomes '$', which would break `sh -c 'kill $$'`.
std::vector<std::string> expand_macros(const std::vector<std::string>& argv, int local_rank,
                                       const Personality& personality);

/// What one worker executes in its attempt: its wrapper, then the program, all macros replaced.
std::vector<std::string> command_of(const LaunchPlan& plan, const NodePlan& node, const WorkerPlan& worker,
                                    int attempt);

}  // namespace lrun::launcher
