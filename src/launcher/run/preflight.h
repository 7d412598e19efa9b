#pragma once

#include <optional>
#include <string>

#include "base/environment.h"
#include "base/user_error.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"
#include "run/prepared_start.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// Why the program cannot be executed on this node.
struct ProgramProblem {
  int error_number = 0;
  bool given_to_python = false;  ///< PROGRAM is a missing script; false: the executable is missing
};

/// Finds it before anything is started. Empty: the program can be executed, as far as that can be seen.
std::optional<ProgramProblem> find_program_problem(const PreparedStart& start, const LaunchPlan& plan,
                                                   const LaunchRequest& request);

/// The verdict of a node that cannot execute the program.
Verdict verdict_of(const ProgramProblem& problem);
/// The same for people, with the verb or file that was probably meant.
UserError program_error(const ProgramProblem& problem, const LaunchRequest& request, const LaunchPlan& plan);

/// Refuses to start relative paths where Slurm's task is in another folder than the lrun that started it through srun.
/// \throws UserError  that folder is not on this node, and the user gave workers no other one.
void check_folder_of_srun(const LaunchPlan& plan, const Environment& environment);

/// Makes the folder for logs that the user named.
/// \throws UserError  it cannot be made or written.
void check_log_folder(const LaunchPlan& plan);

/// \throws UserError  the file of --metrics cannot be made, or would replace something else.
void check_metrics_file(const LaunchPlan& plan);

/// Warns where the folder of the file of --notice is missing.
/// \throws UserError  at its place stands something that is no file.
void check_notice_file(const LaunchPlan& plan, MessageSink& sink);

}  // namespace lrun::launcher
