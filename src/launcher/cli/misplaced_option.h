#pragma once

#include <string>

#include "cli/program_words.h"
#include "cluster/program_facts.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The warning about an option that asks for several workers and stands behind PROGRAM, whose argument it is there:
/// '--devices 4' of `lrun train.py --devices 4`, which has one worker. Empty where the run has several, where an option
/// or a variable says how many, and where the option may be one of PROGRAM's: what is no Python script and no program
/// by its path is not looked at, nor is a shell script, which may pass arguments on.
std::string warn_about_misplaced_option(const LaunchPlan& plan, const LaunchRequest& request,
                                        const ProgramFacts& program, const ReadProgram& read);

}  // namespace lrun::launcher
