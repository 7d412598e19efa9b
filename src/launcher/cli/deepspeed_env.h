#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "cli/parse_args.h"

namespace lrun::launcher {

/// The lines of a file of DeepSpeed's variables as values of --env: 'NAME=VALUE' a line; blanks around both do not
/// count, and neither do empty lines and those that begin with '#'.
/// \param path  for messages.
/// \throws UserError  with the number of the line that is nothing of these.
std::vector<GivenValue> parse_deepspeed_env(std::string_view text, const std::string& path);

/// Under strategy 'deepspeed', for workers on named hosts: the variables of '.deepspeed_env' (DS_ENV_FILE names
/// another) in the home directory and then in this one, as if they stood in the file of settings as 'env'. Options win
/// over them. \throws UserError  a line cannot be read, or sets what lrun itself gives to workers.
void take_deepspeed_env(ParsedCommandLine& parsed, const Environment& environment);

}  // namespace lrun::launcher
