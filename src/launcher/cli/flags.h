#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/launch_request.h"

namespace lrun::launcher {

struct Flag;

/// One value that was given for a flag, with the place where it was given.
struct GivenValue {
  const Flag* flag = nullptr;  ///< a row of the table; never null in use
  std::string text;            ///< of a switch: the number of times that it was given, usually '1'
  Source source = Source::kFlag;
  std::string origin = {};  ///< the name used: '--devices', '-n', 'PET_NNODES', 'devices' in a file
  std::string place = {};   ///< of a value from a file: 'lrun.toml:3'; else empty
  std::string ranks = {};   ///< '0,2-3' of '--wrap@0,2-3'; else empty

  /// As the user wrote it: '--devices 8', '-v', 'PET_NNODES=2', 'devices = 8'.
  [[nodiscard]] std::string as_written() const;
  /// The same with another value, for hints.
  [[nodiscard]] std::string as_written_with(std::string_view value) const;
  /// The beginning of a message about it: "'--devices 8'", or "lrun.toml:3: 'devices = 8'".
  [[nodiscard]] std::string quoted() const;
};

enum class ValueKind {
  kNone,      ///< a switch
  kRequired,  ///< '--flag VALUE' or '--flag=VALUE'
  kOptional,  ///< '--flag' or '--flag=VALUE'
};

enum class FlagGroup { kWorkers, kTraining, kNodes, kProgram, kOutput, kRun, kInformation, kNotInThisVersion };

enum class FlagAction {
  kSetting,
  kConfigFile,   ///< names the file of settings
  kPrintConfig,  ///< prints all settings instead of starting a run
  kHelp,
  kVersion,
};

/// One row of the flag table: all that parser, help, the check of the man page, and completions know about an option.
///
/// A list of words is one text with spaces between them, so that the rows are constant data. Dash and underscore are
/// the same in every long name.
struct Flag {
  std::string_view name;              ///< the long name as help prints it, without dashes; unique
  std::string_view aliases = {};      ///< further long names with the same meaning
  std::string_view short_names = {};  ///< letters, or a whole word such as 'np'
  ValueKind value = ValueKind::kNone;
  std::string_view placeholder = {};  ///< the value as help prints it
  FlagGroup group = FlagGroup::kWorkers;
  std::string_view brief = {};          ///< one line of -h; empty: only --help has it
  std::string_view details = {};        ///< the paragraph of --help
  std::string_view choices = {};        ///< the values that completion offers; apply() checks them
  std::string_view noun = {};           ///< the kind of thing that the choices are, for messages: 'strategy'
  std::string_view example = {};        ///< a correct value, for messages about a wrong one
  std::string_view default_value = {};  ///< as help prints it; empty: help prints none
  bool lrun_variable = true;            ///< LRUN_<NAME> gives the default
  bool torchrun_variable = false;       ///< torchrun's PET_<NAME> gives it, too; see torchrun_variable_of()
  bool repeatable = false;              ///< every value counts, in the order file, variables, line
  bool counted = false;                 ///< a switch that means more when it is given twice
  bool per_rank = false;                ///< '--name@RANKS' is allowed, for these ranks only
  FlagAction action = FlagAction::kSetting;
  /// Checks one value and puts it into the request. The planner finds conflicts between values.
  /// \throws UserError  the value is not allowed; the message names those that are.
  void (*apply)(const GivenValue& given, LaunchRequest& request) = nullptr;
  /// For flags of kNotInThisVersion: the value that changes nothing and is accepted. '*' is any value.
  std::string_view neutral_value = {};
  /// For flags of kNotInThisVersion: what to do instead. Else what to type instead of a value that is near no choice.
  std::string_view hint = {};
  std::string_view same_as = {};          ///< a flag with the same meaning; of the two, only the stronger source counts
  bool overridden_by_standalone = false;  ///< as in torchrun, --standalone makes it ignored
};

/// The table, in the order of help and man page.
std::span<const Flag> flag_table();

/// The row of this name, as in 'num_nodes'; null if there is none.
const Flag* find_flag(std::string_view name);

/// The words of a list in the table.
std::vector<std::string_view> words_of(std::string_view list);

/// '--num-nodes' and '--nnodes': every long name with its dashes, the main one first.
std::vector<std::string> long_names_of(const Flag& flag);

/// The flag with this whole long name, with its dashes; '-' and '_' are equal. nullptr: none.
const Flag* find_long_flag(std::string_view name);

/// The flag with this short name, without its dash: 'n', 'np'. nullptr: none.
const Flag* find_short_flag(std::string_view name);

/// 'LRUN_NUM_NODES'. Empty when no such variable is read.
std::string lrun_variable_of(const Flag& flag);

/// 'PET_NNODES', made as torchrun makes it from its own long name, which is the last one of the row. Empty when no
/// such variable is read.
std::string torchrun_variable_of(const Flag& flag);

[[nodiscard]] inline bool in_this_version(const Flag& flag) { return flag.group != FlagGroup::kNotInThisVersion; }

/// The heading of a group in help.
std::string_view title_of(FlagGroup group);

/// A long name as the parser compares it: '_' becomes '-'.
std::string folded_name(std::string_view name);

}  // namespace lrun::launcher
