#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "cli/flags.h"
#include "cli/user_file.h"

namespace lrun::launcher {

/// The file that is read by default, in the directory where lrun is started.
inline constexpr std::string_view kConfigFileName = "lrun.toml";

/// Gives the text of a file, so that parsing itself is pure.
using ReadFile = std::function<FileText(const std::string& path)>;

/// Reads a file of settings from the disk, of at most 1 MiB.
FileText read_file(const std::string& path);

/// The values of a TOML text, in its order: 'strategy = "ddp"' is --strategy ddp, with any long name of the option. A
/// switch is true or false. A repeatable option takes an array, or a table whose entry 'NAME = value' is the value
/// 'NAME=value'.
/// \param path  the file, for messages and GivenValue::place.
/// \throws UserError  'PATH:LINE: ...': not TOML, an unknown setting, a value of the wrong kind, a setting given twice.
std::vector<GivenValue> parse_config(std::string_view text, const std::string& path);

/// The settings of the file `asked_for` (from --config or LRUN_CONFIG), else of lrun.toml in this directory if it
/// exists. Inside a run lrun.toml does not count, so that a nested lrun does not repeat its parent's plan. \throws
/// UserError  the file cannot be read, or as parse_config().
std::vector<GivenValue> values_from_config(const GivenValue* asked_for, const Environment& environment,
                                           const ReadFile& read);

/// One line for each file in this directory whose name says that it has settings in another format.
std::vector<std::string> warn_about_other_formats(const ReadFile& read);

/// A line for an lrun.toml that is not read, because it lies beside the script `program` or in the parent folder, where
/// this directory has none. Empty: there is no such file. One in the home folder is taken for one of other runs.
std::string note_config_elsewhere(const std::string& program, const Environment& environment, const ReadFile& read);

}  // namespace lrun::launcher
