#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "cli/flags.h"
#include "cli/user_file.h"

namespace lrun::launcher {

/// The file that is read without being asked for, in the folder where lrun is started.
inline constexpr std::string_view kConfigFileName = "lrun.toml";

/// How parsing gets at a file's text, so that it is pure otherwise.
using ReadFile = std::function<FileText(const std::string& path)>;

/// Reads a file of settings from the disk, of at most 1 MiB.
FileText read_file(const std::string& path);

/// The values that a TOML text of settings gives, in its order: 'strategy = "ddp"' for --strategy ddp, with any long
/// name of an option; true or false for a switch. An option that may be repeated takes an array, or a table, whose
/// entry 'NAME = value' is the value 'NAME=value'.
/// \param path  of the file, for messages and GivenValue::place.
/// \throws UserError  'PATH:LINE: ...': not TOML, no such setting, a value of the wrong kind, one given twice.
std::vector<GivenValue> parse_config(std::string_view text, const std::string& path);

/// The settings of the file that counts: `asked_for` (from --config or LRUN_CONFIG), else lrun.toml here, when there is
/// one. Inside a run lrun.toml does not count, so that a nested lrun does not repeat its parent's plan.
/// \throws UserError  it cannot be read, and all that parse_config() throws.
std::vector<GivenValue> values_from_config(const GivenValue* asked_for, const Environment& environment,
                                           const ReadFile& read);

}  // namespace lrun::launcher
