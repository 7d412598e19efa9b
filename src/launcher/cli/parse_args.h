#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cli/config_file.h"
#include "cli/flags.h"
#include "cli/verb_table.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The meaning of a command line.
struct ParsedCommandLine {
  enum class Action { kLaunch, kVerb, kShortHelp, kLongHelp, kVersion, kPrintConfig };

  Action action = Action::kLaunch;
  LaunchRequest request;              ///< complete for kLaunch; its command is not empty
  VerbRequest verb;                   ///< for kVerb
  std::vector<GivenValue> settings;   ///< the values that count, for kPrintConfig
  std::vector<std::string> warnings;  ///< one line each, to be printed before anything else
  std::string note;                   ///< the same; may be empty
};

/// Reads `lrun [options] [--] PROGRAM [ARGS...]`, or `lrun VERB ...` when the first word is a verb. Pure: it depends on
/// its arguments only.
///
/// argv[0] is the command's name. A link named 'torchrun' means --compat=torchrun. A link named 'horovodrun' also
/// accepts horovodrun's options and has its default strategy. The order of precedence is flag, LRUN_<FLAG>, PET_<DEST>,
/// the file of settings, the default. Values are checked one by one; planning finds conflicts between them. \param
/// read_file  gives the text of the file of settings. \throws UserError  with the mistake and what to type instead.
ParsedCommandLine parse_command_line(const std::vector<std::string>& argv, const Environment& environment,
                                     const ReadFile& read_file);

/// Puts the values that parse_command_line() has chosen into a request.
/// \throws UserError  as parse_command_line().
void apply_all(const std::vector<GivenValue>& values, LaunchRequest& request);

}  // namespace lrun::launcher
