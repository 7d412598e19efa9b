#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "cli/parse_args.h"

namespace lrun::launcher {

/// The lines of a file of DeepSpeed's variables, 'NAME=VALUE' each, as values of --env. Blanks around name and value
/// are removed. Empty lines and lines that begin with '#' are skipped. \param path  for messages. \throws UserError  a
/// line is of another form; the message has its number.
std::vector<GivenValue> parse_deepspeed_env(std::string_view text, const std::string& path);

/// With strategy 'deepspeed': adds the variables of '.deepspeed_env' (or of the file that DS_ENV_FILE names) in the
/// home directory and then in this one, as if they stood in the file of settings as 'env'. Options override them.
/// \throws UserError  a line cannot be read, or sets a variable that lrun itself gives to workers.
void take_deepspeed_env(ParsedCommandLine& parsed, const Environment& environment);

}  // namespace lrun::launcher
