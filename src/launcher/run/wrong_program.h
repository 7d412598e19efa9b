#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plan/launch_request.h"

namespace lrun::launcher {

/// A hint for a PROGRAM that cannot be executed because it is something else: a whole command line in quotes, a
/// notebook, a source file, a word that is a verb of other tools, a program for other processors, a launcher whose
/// place lrun takes. Empty: none of these. \param file  where it was looked for; its first bytes are read
std::string advice_about(const std::string& program, const std::filesystem::path& file);

/// \throws UserError  '-m' names a file and not a module. \param folder  where workers start; empty: here
void check_module(const LaunchRequest& request, const std::filesystem::path& folder);

/// A note about a program of the system that was probably meant as a verb: `lrun ps`. Empty: it is none of them.
std::string note_about_word(const std::vector<std::string>& command);

/// A warning about a command that starts another launcher in each worker; empty: it does not.
std::string warn_of_launcher(const std::vector<std::string>& command);

}  // namespace lrun::launcher
