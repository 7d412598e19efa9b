#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cli/verb_table.h"
#include "plan/launch_request.h"

namespace lrun {

/// What a command line asks for.
struct ParsedCommandLine {
  enum class Action { kLaunch, kVerb, kShortHelp, kLongHelp, kVersion };

  Action action = Action::kLaunch;
  LaunchRequest request;              ///< complete for kLaunch; its command is not empty
  VerbRequest verb;                   ///< for kVerb
  std::vector<std::string> warnings;  ///< one line each, to be said before anything else

  bool operator==(const ParsedCommandLine&) const = default;
};

/// Reads `lrun [options] [--] PROGRAM [ARGS...]`, or `lrun VERB ...` when the first word is one. Pure: nothing but its
/// arguments is looked at.
///
/// argv[0] is the command's name: a link named 'torchrun' means --compat=torchrun. Precedence is flag, then
/// LRUN_<FLAG>, then PET_<DEST>, then the default. Values are checked one by one; conflicts between them are the
/// plan's. \throws UserError  with what is wrong and what to type instead.
ParsedCommandLine parse_command_line(const std::vector<std::string>& argv, const Environment& environment);

}  // namespace lrun
