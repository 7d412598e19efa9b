#pragma once

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "base/user_error.h"
#include "cli/parse_args.h"
#include "report/diagnostics.h"

namespace lrun::launcher {

using Variables = std::map<std::string, std::string, std::less<>>;

inline FileText no_files(const std::string& /*path*/) { return {ENOENT, {}}; }

/// The whole answer to `lrun words...`.
inline ParsedCommandLine parse(std::vector<std::string> words, Variables variables = {},
                               const std::string& command = "lrun") {
  words.insert(words.begin(), command);
  return parse_command_line(words, Environment(std::move(variables)), no_files);
}

inline LaunchRequest request_of(std::vector<std::string> words, Variables variables = {},
                                const std::string& command = "lrun") {
  return parse(std::move(words), std::move(variables), command).request;
}

/// What a person sees on stderr for `lrun words...`, or '(accepted)'.
inline std::string refusal(std::vector<std::string> words, Variables variables = {},
                           const std::string& command = "lrun") {
  try {
    (void)parse(std::move(words), std::move(variables), command);
  } catch (const UserError& error) {
    return render(error, false);
  }
  return "(accepted)";
}

}  // namespace lrun::launcher
