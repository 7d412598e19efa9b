#pragma once

#include <optional>
#include <string>

#include "base/environment.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"
#include "report/message_sink.h"
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

/// Prints why the program cannot be executed, with the verb or file that was probably meant, and leaves the parent's
/// error file.
/// \param typed  PROGRAM, also where the Python that was to run it is missing
Verdict refuse_program(const ProgramProblem& problem, const std::string& typed, const LaunchPlan& plan,
                       const Environment& environment, MessageSink& sink);

/// Makes the folder for logs that the user named.
/// \throws UserError  it cannot be made or written.
void check_log_folder(const LaunchPlan& plan);

}  // namespace lrun::launcher
