#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/rank_process.h"

namespace lrun::launcher {

/// What a line that begins with a verb asks for: `lrun status [RUN]`.
struct VerbRequest {
  enum class Kind { kStatus, kReport, kStack, kDoctor };

  Kind kind = Kind::kStatus;
  bool help = false;                   ///< only say what the verb does
  std::string run;                     ///< as typed; empty: none was named
  bool json = false;                   ///< for programs
  std::string html_file;               ///< where the page goes; empty: none
  std::vector<RankProcess> processes;  ///< instead of those of a run
  std::vector<std::string> hosts;      ///< to be reached from here
  bool verbose = false;                ///< also what is in order
  bool brief = false;                  ///< only what a sentence needs

  bool operator==(const VerbRequest&) const = default;
};

/// One option of a verb.
struct VerbOption {
  std::string_view name;         ///< without dashes
  std::string_view placeholder;  ///< how help writes its value; empty: a switch
  std::string_view details;      ///< a sentence of --help
  /// \throws UserError  a value that is not allowed.
  void (*apply)(const std::string& value, VerbRequest& request);
};

/// One verb: all that parser, help, man page check and completions know about it. Its one argument, if any, is RUN.
struct Verb {
  std::string_view name;
  VerbRequest::Kind kind;
  std::string_view brief;    ///< one line of `lrun --help`
  std::string_view details;  ///< the paragraph of `lrun VERB --help`
  std::span<const VerbOption> options;
  bool takes_run = true;
};

/// The table, in the order in which help and man page show it.
std::span<const Verb> verb_table();

/// The verb of that name, or nullptr.
const Verb* find_verb(std::string_view name);

/// Reads what follows the verb: options and at most one RUN, in any order; '-h' and '--help' everywhere.
/// \throws UserError  with what is wrong and what to type instead.
VerbRequest parse_verb(const Verb& verb, const std::vector<std::string>& words);

}  // namespace lrun::launcher
