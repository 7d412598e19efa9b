// The texts of -h, --help and 'lrun VERB --help', made from the tables of flags and verbs. main() prints them.
#include "cli/help.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "cli/verb_table.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kColumns = 79;  // some terminals wrap a full line of 80
constexpr std::size_t kShortHelpIndent = 33;
constexpr std::size_t kVerbIndent = 28;

constexpr std::string_view kUsage = "usage: lrun [options] [--] PROGRAM [ARGS...]\n";

constexpr std::string_view kExamples =
    "Examples:\n"
    "  lrun --devices 2 ./train --epochs 3       two workers, gradients averaged\n"
    "  lrun --devices 0,2 --strategy dp ./train  one worker drives GPUs 0 and 2\n"
    "  lrun -n 4 train.py --lr 0.1               four Python workers\n"
    "  lrun --dry-run --devices 8 ./train        show the plan, start nothing\n"
    "  lrun -- status                            run a program named 'status'\n";

constexpr std::string_view kExitCodes =
    "Exit status:\n"
    "  0           every worker exited with 0\n"
    "  N, 128+S    the exit code of the worker that failed first, or its signal S\n"
    "  124         a deadline passed\n"
    "  125         lrun rejected the command line, the plan or the resources\n"
    "  126, 127    PROGRAM cannot be executed, or does not exist\n"
    "  After Ctrl-C or SIGTERM lrun stops the workers and ends by that signal.\n";

constexpr std::string_view kRunMeans =
    "RUN is the id of a run, at least 3 characters of its beginning or end, the name from --rdzv-id, or the directory "
    "of the run.";

/// Words wrapped at kColumns, each line indented.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  for (const std::string_view word : words_of(text)) {
    if (column == 0 || column + 1 + word.size() > kColumns) {
      if (column != 0) result += '\n';
      result.append(indent, ' ');
      column = indent;
    } else {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result + "\n";
}

std::string value_suffix(const Flag& flag) {
  switch (flag.value) {
    case ValueKind::kNone:
      return {};
    case ValueKind::kRequired:
      return " " + std::string(flag.placeholder);
    case ValueKind::kOptional:
      return "[=" + std::string(flag.placeholder) + "]";
  }
  return {};
}

/// '-n, -np, --nproc-per-node N'.
std::string names_of(const Flag& flag, bool with_aliases) {
  std::string names;
  for (const std::string_view name : words_of(flag.short_names)) names += "-" + std::string(name) + ", ";
  const std::vector<std::string> long_names = long_names_of(flag);
  for (std::size_t i = 0; i < (with_aliases ? long_names.size() : 1); ++i)
    names += (i == 0 ? "" : ", ") + long_names[i];
  return names + value_suffix(flag);
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string facts_of(const Flag& flag) {
  std::string facts;
  if (!flag.choices.empty() && flag.value == ValueKind::kRequired)
    facts += "Values: " + joined(words_of(flag.choices)) + ". ";
  if (!flag.default_value.empty()) facts += "Default: " + std::string(flag.default_value) + ". ";
  std::string variables = lrun_variable_of(flag);
  if (const std::string torchruns = torchrun_variable_of(flag); !torchruns.empty()) {
    variables += (variables.empty() ? "" : ", ") + torchruns;
  }
  if (!variables.empty()) facts += "Variable: " + variables + ".";
  return facts;
}

std::string group_help(FlagGroup group) {
  std::string text = std::string(title_of(group)) + ":\n";
  for (const Flag& flag : flag_table()) {
    if (flag.group != group) continue;
    text += flag_help(flag);
  }
  return text + "\n";
}

/// '--logs-specs (default)': the name, and the value that is accepted.
std::string later_entry(const Flag& flag) {
  std::string entry = "--" + std::string(flag.name);
  if (flag.neutral_value.empty()) return entry;
  return entry + " (" + (flag.neutral_value == "*" ? "any" : std::string(flag.neutral_value)) + ")";
}

std::string later_flags() {
  std::string entries;
  for (const Flag& flag : flag_table()) {
    if (!in_this_version(flag)) entries += (entries.empty() ? "" : ", ") + later_entry(flag);
  }
  return std::string(title_of(FlagGroup::kNotInThisVersion)) + ":\n" +
         wrapped("Accepted for compatibility, with the values in parentheses. lrun rejects any other value.", 2) +
         wrapped(entries, 6) + "\n";
}

std::string verb_options(const Verb& verb) {
  std::string text = "Options:\n";
  for (const VerbOption& option : verb.options) {
    const std::string letter = option.letter == '\0' ? "" : std::string{'-', option.letter, ',', ' '};
    text += "  " + letter + "--" + std::string(option.name) +
            (option.placeholder.empty() ? "" : " " + std::string(option.placeholder)) + "\n" +
            wrapped(option.details, 6);
  }
  return text;
}

/// 'status [RUN]'.
std::string usage_of(const Verb& verb) {
  return std::string(verb.name) + (verb.arguments.empty() ? "" : " ") + std::string(verb.arguments);
}

std::string verb_lines(const std::string& before, std::size_t indent) {
  std::string text;
  for (const Verb& verb : verb_table()) {
    std::string line = before + usage_of(verb);
    line.resize(std::max(indent, line.size() + 2), ' ');
    text += line + std::string(verb.brief) + "\n";
  }
  return text;
}

}  // namespace

std::string short_help() {
  std::string text = std::string(kUsage) + "\n";
  for (const Flag& flag : flag_table()) {
    if (!in_this_version(flag) || flag.brief.empty()) continue;
    std::string line = "  " + names_of(flag, false);
    line.resize(std::max(kShortHelpIndent, line.size() + 2), ' ');
    text += line + std::string(flag.brief) + "\n";
  }
  text += "\n" + verb_lines("  lrun ", kShortHelpIndent);
  return text + "Example: lrun --devices 2 ./train --epochs 3    (more: lrun --help, man lrun)\n";
}

std::string long_help() {
  std::string text = std::string(kUsage) + "\n" +
                     wrapped(
                         "Starts PROGRAM once per device with the environment of torchrun, supervises the workers, and "
                         "stops all of them when one fails. Options end at PROGRAM; in its arguments only "
                         "$local_rank and ${local_rank} are replaced. In option names dash and underscore are the "
                         "same, and a unique prefix is enough. '--opt=v' and '--opt v' are the same. The last of "
                         "several values wins.",
                         0) +
                     "\n" + std::string(kExamples) + "\n";
  for (const FlagGroup group : {FlagGroup::kWorkers, FlagGroup::kTraining, FlagGroup::kNodes, FlagGroup::kProgram,
                                FlagGroup::kOutput, FlagGroup::kRun, FlagGroup::kInformation}) {
    text += group_help(group);
  }
  text += "Verbs, as the first word (see 'lrun help VERB'):\n" + verb_lines("  ", kVerbIndent) + "\n";
  return text + later_flags() + std::string(kExitCodes);
}

std::string verb_help(VerbRequest::Kind kind) {
  std::string text;
  for (const Verb& verb : verb_table()) {
    if (verb.kind != kind) continue;
    const std::string options = verb.options.empty() ? "" : " [options]";
    const std::string arguments = verb.arguments.empty() ? "" : " " + std::string(verb.arguments);
    text += "usage: lrun " + std::string(verb.name) + options + arguments + "\n\n" + wrapped(verb.details, 0);
    if (!verb.options.empty()) text += "\n" + verb_options(verb);
    if (verb.arguments.find("RUN") != std::string_view::npos) text += "\n" + wrapped(kRunMeans, 0);
  }
  return text;
}

std::string flag_help(const Flag& flag) {
  const std::string facts = facts_of(flag);
  return "  " + names_of(flag, true) + "\n" + wrapped(flag.details, 6) + (facts.empty() ? "" : wrapped(facts, 6));
}

std::string help_text(ParsedCommandLine::Action action) {
  switch (action) {
    case ParsedCommandLine::Action::kShortHelp:
      return short_help();
    case ParsedCommandLine::Action::kLongHelp:
      return long_help();
    case ParsedCommandLine::Action::kLaunch:
    case ParsedCommandLine::Action::kVerb:
    case ParsedCommandLine::Action::kVersion:
    case ParsedCommandLine::Action::kPrintConfig:
      break;
  }
  return {};
}

}  // namespace lrun::launcher
