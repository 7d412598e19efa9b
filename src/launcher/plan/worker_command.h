#pragma once

#include <string>
#include <vector>

#include "cluster/program_facts.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"
#include "plan/personality.h"

namespace lrun::launcher {

/// The command of all workers before macros: the program itself, or Python in front of it.
///
/// See python_of(). Python gets -u (unbuffered); --no-python executes whatever PROGRAM is.
/// \throws UserError  --module together with --no-python; --no-python where a program gets its local rank as an
///                    argument, which only Python programs do; --use-env under torchrun's name, which has no such
///                    option
std::vector<std::string> worker_command(const LaunchRequest& request, const ProgramFacts& program);

/// Adds an argument with the local rank behind PROGRAM, where PROGRAM's launcher does: DeepSpeed's '--local_rank=N',
/// equal to LOCAL_RANK (0 where each worker sees only its own GPU), or '--local-rank=N' of torch.distributed.launch. It
/// holds the macro that expand_macros() replaces.
void add_local_rank(const LaunchPlan& plan, const LaunchRequest& request, std::vector<std::string>& argv);

/// `argv` for one worker. In every argument but the first, '${local_rank}' and '$local_rank' become the number, and
/// '$$local_rank' becomes '$local_rank'. Other names ('$HOME', '$local_rank_x') and dollars stay. Under torchrun's
/// personality every '$$' becomes '$', which would break `sh -c 'kill $$'`.
std::vector<std::string> expand_macros(const std::vector<std::string>& argv, int local_rank,
                                       const Personality& personality);

/// A warning where an argument is '$RANK', '--rank=${RANK}' or the like: no shell replaces it. Empty: none is.
std::string warn_about_shell_variables(const std::vector<std::string>& argv);

/// The command of one worker in its attempt: its wrapper, then the program, with all macros replaced.
std::vector<std::string> command_of(const LaunchPlan& plan, const NodePlan& node, const WorkerPlan& worker,
                                    int attempt);

}  // namespace lrun::launcher
