#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/launch_request.h"
#include "verdict/failure_record.h"

namespace lrun::launcher {

/// A hint for a PROGRAM that cannot be executed because it is something else: a whole command line in quotes, a
/// notebook, a source file, a word that is a verb of other tools, a program for other processors, a launcher whose
/// place lrun takes. Empty: none of these. \param file  where it was looked for; its first bytes are read
std::string advice_about(const std::string& program, const std::filesystem::path& file);

/// \throws UserError  '-m' names a file and not a module; Python or a shell without a script, which would read one from
/// an input that workers do not have; pdb, which would do so; a single worker of a program that was meant as a verb:
/// `lrun ps`.
void check_command(const LaunchRequest& request, const LaunchPlan& plan);

/// A hint for a run whose PROGRAM found no program to start, because that is a script of Python: 'lrun nohup train.py'.
/// Empty: something else has failed.
std::string hint_about_tool(const FailureRecord& record, const std::vector<std::string>& argv);

/// A hint for a run in which Python did not find the script or module of the user, where one with nearly that name is
/// in its folder. Empty: something else has failed, or none is near. \param folder  that the workers start in
std::string hint_about_misspelt_name(const FailureRecord& record, const std::filesystem::path& folder);

/// A hint for a run of a script in a folder below, which did not find a module or file that is there, where it is not
/// looked for, or is part of a package. Empty: something else has failed. \param folder  that the workers start in
std::string hint_about_folder(const FailureRecord& record, const std::filesystem::path& folder,
                              const std::vector<std::string>& argv);

/// A hint for a run of mpirun, accelerate and the like that has failed. Empty: it is none of these.
std::string hint_about_failed_launcher(const std::vector<std::string>& argv);

/// A warning about a command that starts another launcher in each worker; empty: it does not. One worker may start
/// mpirun, accelerate and the like for good reasons.
std::string warn_of_launcher(const std::vector<std::string>& command, int world_size);

}  // namespace lrun::launcher
