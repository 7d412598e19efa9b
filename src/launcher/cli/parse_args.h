#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cli/config_file.h"
#include "cli/flags.h"
#include "cli/verb_table.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// What a command line asks for.
struct ParsedCommandLine {
  enum class Action { kLaunch, kVerb, kShortHelp, kLongHelp, kVersion, kPrintConfig };

  Action action = Action::kLaunch;
  LaunchRequest request;              ///< complete for kLaunch; its command is not empty
  VerbRequest verb;                   ///< for kVerb
  std::vector<GivenValue> settings;   ///< what counts of all values given, for kPrintConfig
  std::vector<std::string> warnings;  ///< one line each, to be said before anything else
};

/// Reads `lrun [options] [--] PROGRAM [ARGS...]`, or `lrun VERB ...` when the first word is one. Pure: nothing but its
/// arguments is looked at.
///
/// argv[0] is the command's name: a link named 'torchrun' means --compat=torchrun, and one named 'horovodrun' takes
/// horovodrun's options, too, and has its default of a strategy. Precedence is flag, then
/// LRUN_<FLAG>, then PET_<DEST>, then the file of settings, then the default. Values are checked one by one; conflicts
/// between them are the plan's.
/// \param read_file  gives the text of the file of settings.
/// \throws UserError  with what is wrong and what to type instead.
ParsedCommandLine parse_command_line(const std::vector<std::string>& argv, const Environment& environment,
                                     const ReadFile& read_file);

/// Puts values that parse_command_line() decided on into a request.
/// \throws UserError  as parse_command_line().
void apply_all(const std::vector<GivenValue>& values, LaunchRequest& request);

}  // namespace lrun::launcher
