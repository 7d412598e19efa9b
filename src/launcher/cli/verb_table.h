#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log_stream.h"
#include "cluster/user_hosts.h"
#include "inspect/rank_process.h"
#include "plan/rank_ranges.h"

namespace lrun::launcher {

struct Flag;

/// The meaning of a line that begins with a verb: `lrun status [RUN]`.
struct VerbRequest {
  enum class Kind { kStatus, kLogs, kRuns, kReport, kExplain, kAgain, kStack, kDoctor, kCompletion, kHelp };

  Kind kind = Kind::kStatus;
  bool help = false;                   ///< only print the help of the verb
  std::string run;                     ///< as typed; empty: not given
  bool json = false;                   ///< print JSON
  bool watch = false;                  ///< look again and again
  std::string html_file;               ///< the file for the page; empty: no page
  bool goodput = false;                ///< what the time was spent on instead of what happened
  std::vector<RankProcess> processes;  ///< to be looked at instead of those of a run
  std::vector<Host> hosts;             ///< to be reached from this host
  RankRanges ranks;                    ///< whose lines to print; empty: of all
  bool follow = false;                 ///< print lines until the run ends
  std::optional<LogStream> stream;     ///< of a worker, to be printed; empty: both
  std::string text;                    ///< that printed lines have
  std::optional<int> attempt;          ///< empty: the last one
  std::optional<int> last_lines;       ///< of each log file; empty: all
  bool verbose = false;                ///< also print passed checks
  bool brief = false;                  ///< only print one sentence
  bool dry_run = false;                ///< only show what would be run
  std::string shell;                   ///< the shell that completes: bash, zsh or fish

  const Flag* flag = nullptr;  ///< whose help to print; null: none

  bool operator==(const VerbRequest&) const = default;
};

/// One option of a verb.
struct VerbOption {
  std::string_view name;         ///< without dashes
  std::string_view placeholder;  ///< the value as help prints it; empty: a switch
  std::string_view details;      ///< a sentence of --help
  /// \throws UserError  the value is not allowed.
  void (*apply)(const std::string& value, VerbRequest& request);
  char letter = '\0';  ///< the short name; '\0': none
};

/// One verb: all that parser, help, the check of the man page, and completions know about it.
struct Verb {
  std::string_view name;
  VerbRequest::Kind kind;
  std::string_view brief;    ///< one line of `lrun -h`
  std::string_view details;  ///< the paragraph of `lrun VERB --help`
  std::span<const VerbOption> options;
  std::string_view arguments;  ///< as help prints them: '[RUN]'; empty: none
  /// Takes one argument. nullptr: there are none. \throws UserError  it is not allowed.
  void (*take)(const Verb& verb, const std::string& word, VerbRequest& request) = nullptr;
};

/// The table, in the order of help and man page.
std::span<const Verb> verb_table();

/// The verb with this name, or nullptr.
const Verb* find_verb(std::string_view name);

/// Reads the words after the verb: options and arguments, in any order, and '-h' or '--help' anywhere.
/// \throws UserError  with the mistake and what to type instead.
VerbRequest parse_verb(const Verb& verb, const std::vector<std::string>& words);

}  // namespace lrun::launcher
