#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/launch_request.h"

namespace lrun::launcher {

struct Flag;

/// One value that was given for a flag, and how to write it in messages.
struct GivenValue {
  const Flag* flag = nullptr;  ///< a row of the table; never null in use
  std::string text;            ///< of a switch: how often it was given, '1' for most
  Source source = Source::kFlag;
  std::string origin = {};  ///< the name used: '--devices', '-n', 'PET_NNODES', 'devices' in a file
  std::string place = {};   ///< of a value from a file: 'lrun.toml:3'; else empty
  std::string ranks = {};   ///< '0,2-3' of '--wrap@0,2-3'; else empty

  /// '--devices 8', '-v', 'PET_NNODES=2', 'devices = 8'.
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
  kConfigFile,   ///< names the file that gives defaults
  kPrintConfig,  ///< asks for all settings instead of a run
  kHelp,
  kVersion,
};

/// One row of the flag table: all that parser, help, man page check and completions know about an option.
///
/// Lists of words are one text with spaces between them, so that the rows are constant data. Dash and underscore are
/// the same letter in every long name.
struct Flag {
  std::string_view name;              ///< the long name as help shows it, without dashes; unique
  std::string_view aliases = {};      ///< further long names with the same meaning
  std::string_view short_names = {};  ///< one letter each, or a whole word such as 'np'
  ValueKind value = ValueKind::kNone;
  std::string_view placeholder = {};  ///< how help writes the value
  FlagGroup group = FlagGroup::kWorkers;
  std::string_view brief = {};          ///< one line of -h; empty: only --help has room for it
  std::string_view details = {};        ///< the paragraph of --help
  std::string_view choices = {};        ///< the values that completion offers; checked by apply()
  std::string_view noun = {};           ///< what the choices are, for messages: 'strategy'
  std::string_view example = {};        ///< a right value, for messages about a wrong one
  std::string_view default_value = {};  ///< as help shows it; empty: nothing to show
  bool lrun_variable = true;            ///< LRUN_<NAME> gives the default
  bool torchrun_variable = false;       ///< torchrun's PET_<NAME> does, too; see torchrun_variable_of()
  bool repeatable = false;              ///< every value counts, in their order: file, variables, line
  bool per_rank = false;                ///< '--name@RANKS' is for these ranks only
  FlagAction action = FlagAction::kSetting;
  /// Checks one value and puts it into the request. Conflicts between values are the planner's.
  /// \throws UserError  a value that is not allowed, with what is allowed.
  void (*apply)(const GivenValue& given, LaunchRequest& request) = nullptr;
  /// For flags of kNotInThisVersion: the values that ask for nothing and are accepted. '*' is any value.
  std::string_view neutral_values = {};
  std::string_view hint = {};             ///< what to do instead, for flags of kNotInThisVersion
  std::string_view same_as = {};          ///< a flag with the same meaning: only the stronger source of the two counts
  bool overridden_by_standalone = false;  ///< torchrun ignores it beside --standalone
};

/// The table, in the order in which help and man page show it.
std::span<const Flag> flag_table();

/// The row of this name, as in 'num_nodes'. Null: there is none.
const Flag* find_flag(std::string_view name);

/// The words of a list in the table.
std::vector<std::string_view> words_of(std::string_view list);

/// '--num_nodes' and '--nnodes': every long name with its dashes, the main one first.
std::vector<std::string> long_names_of(const Flag& flag);

/// 'LRUN_NUM_NODES'. Empty: no such variable is read.
std::string lrun_variable_of(const Flag& flag);

/// 'PET_NNODES', made as torchrun makes it from its own long name, which is the last one of the row. Empty: no such
/// variable is read.
std::string torchrun_variable_of(const Flag& flag);

[[nodiscard]] inline bool in_this_version(const Flag& flag) { return flag.group != FlagGroup::kNotInThisVersion; }

/// The heading of a group in help.
std::string_view title_of(FlagGroup group);

/// A long name as the parser compares it: '_' becomes '-'.
std::string folded_name(std::string_view name);

}  // namespace lrun::launcher
