#pragma once

#include <string>

#include "cli/parse_args.h"

namespace lrun::launcher {

/// One screen: at most 24 lines of at most 80 columns, with a newline at the end.
std::string short_help();

/// Everything: examples, every flag by group with its choices, default and variables, exit codes. 80 columns.
std::string long_help();

/// 'lrun 0.1.0' with a newline.
std::string version_line();

/// What one verb does, with its options.
std::string verb_help(VerbRequest::Kind kind);

/// The one that was asked for; empty for kLaunch, kVerb and kPrintConfig.
std::string help_text(ParsedCommandLine::Action action);

}  // namespace lrun::launcher
