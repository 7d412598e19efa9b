#pragma once

#include <string>
#include <vector>

#include "cli/program_words.h"
#include "cluster/program_facts.h"
#include "plan/launch_plan.h"
#include "plan/launch_request.h"
#include "verdict/failure_record.h"

namespace lrun::launcher {

/// The warning about an option for several workers that stands behind PROGRAM and so is an argument of PROGRAM: in
/// `lrun train.py --devices 4`, which has one worker, '--devices 4'. Not when the run has several workers or an option
/// or a variable gives their number. The same for options that only launchers have, such as '--max-restarts', in any
/// run. Empty when the option may be one of PROGRAM's own. Only Python scripts and programs given by path can be
/// searched. A shell script may pass its arguments on, so it is not.
std::string warn_about_misplaced_option(const LaunchPlan& plan, const LaunchRequest& request,
                                        const ProgramFacts& program, const ReadProgram& read);

/// A hint about an option of lrun that stands behind PROGRAM and that PROGRAM has refused by its name. Empty: there is
/// none. \param argv  PROGRAM with its arguments
std::string hint_about_refused_option(const FailureRecord& record, const std::string& program,
                                      const std::vector<std::string>& argv);

}  // namespace lrun::launcher
