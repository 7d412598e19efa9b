#pragma once

#include <string>

#include "cli/parse_args.h"

namespace lrun::launcher {

/// One screen: at most 24 lines of at most 80 columns, with a newline at the end.
std::string short_help();

/// Examples, every flag by group with its values, default and variables, and exit codes, in 80 columns.
std::string long_help();

/// The help of one verb, with its options.
std::string verb_help(VerbRequest::Kind kind);

/// What long_help() says about one flag.
std::string flag_help(const Flag& flag);

/// The text of kShortHelp and kLongHelp; empty for other actions.
std::string help_text(ParsedCommandLine::Action action);

}  // namespace lrun::launcher
