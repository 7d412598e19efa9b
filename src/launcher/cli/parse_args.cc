// From the words of a command line to a LaunchRequest or a VerbRequest: joins the values of line, variables and file by
// precedence and applies them. main() calls it first.
#include "cli/parse_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string_view>

#include "base/user_error.h"
#include "cli/environment_values.h"
#include "cli/flags.h"
#include "cli/option_values.h"
#include "cli/read_value.h"
#include "cli/spelling.h"
#include "plan/personality.h"

namespace lrun::launcher {
namespace {

using LineAction = ParsedCommandLine::Action;

Compat compat_of_name(const std::vector<std::string>& argv) {
  if (argv.empty()) return Compat::kLrun;
  const std::string_view path = argv.front();
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == "horovodrun") return Compat::kHorovodrun;
  return name == "torchrun" ? Compat::kTorchrun : Compat::kLrun;
}

/// The verb that the line begins with, or nullptr.
const Verb* verb_of(const std::vector<std::string>& words, Compat compat) {
  if (words.empty() || !personality_of(compat).verbs) return nullptr;
  return find_verb(words.front());
}

LineAction action_of(const GivenValue& given) {
  switch (given.flag->action) {
    case FlagAction::kVersion:
      return LineAction::kVersion;
    case FlagAction::kHelp:
      return given.origin == "-h" ? LineAction::kShortHelp : LineAction::kLongHelp;
    case FlagAction::kPrintConfig:
      return LineAction::kPrintConfig;
    case FlagAction::kSetting:
    case FlagAction::kConfigFile:
      break;
  }
  return LineAction::kLaunch;
}

/// The first of -h, --help, --version and --print-config on the line decides.
LineAction action_of(const SpelledLine& line) {
  for (const GivenValue& given : line.options) {
    if (const LineAction action = action_of(given); action != LineAction::kLaunch) return action;
  }
  return LineAction::kLaunch;
}

using Values = std::vector<GivenValue>;

const GivenValue* find_config_file(const Values& values) {
  const auto found = std::find_if(values.begin(), values.end(), [](const GivenValue& given) {
    return given.flag->action == FlagAction::kConfigFile;
  });
  return found == values.end() ? nullptr : &*found;
}

/// A later Source overrides an earlier one, and LRUN_ variables override those of torchrun.
bool is_stronger(const GivenValue& left, const GivenValue& right) {
  if (left.source != right.source) return left.source > right.source;
  return right.origin.starts_with("PET_") && !left.origin.starts_with("PET_");
}

/// '2,3' names devices as well as counting them, so a plain count from a stronger source does not replace it.
bool names_devices(const GivenValue& given) { return given.flag->name == "devices" && is_device_list(given.text); }

/// Of two flags with the same meaning, only the one from the stronger source counts. The planner compares them where
/// both come from the same source.
void drop_weaker_spellings(std::map<const Flag*, Values>& decided) {
  for (const Flag& flag : flag_table()) {
    if (flag.same_as.empty()) continue;
    const auto other = std::find_if(decided.begin(), decided.end(),
                                    [&](const auto& entry) { return entry.first->name == flag.same_as; });
    const auto own = decided.find(&flag);
    if (own == decided.end() || other == decided.end()) continue;
    if (is_stronger(own->second.front(), other->second.front())) {
      if (!names_devices(other->second.front())) decided.erase(other);
    } else if (is_stronger(other->second.front(), own->second.front())) {
      decided.erase(own);
    }
  }
}

/// The values that count: those of the last source that gives the flag, or all values of a repeatable one. Other values
/// are not even checked. The result is in the table's order, so that the first error is always the same.
Values decide(std::initializer_list<Values*> sources) {
  std::map<const Flag*, Values> decided;
  for (Values* source : sources) {
    for (const GivenValue& given : *source) {
      if (!given.flag->repeatable) decided[given.flag].clear();
    }
    for (GivenValue& given : *source) decided[given.flag].push_back(std::move(given));
  }
  drop_weaker_spellings(decided);
  Values values;
  for (auto& [flag, of_flag] : decided) std::move(of_flag.begin(), of_flag.end(), std::back_inserter(values));
  return values;
}

bool asks_for_standalone(const std::vector<GivenValue>& values) {
  return std::any_of(values.begin(), values.end(),
                     [](const GivenValue& given) { return given.flag->name == "standalone" && switch_value(given); });
}

/// For an option without its value, which takes the next word: '--rdzv-id train.py'.
std::string hint_about_taken_program(const SpelledLine& line) {
  if (line.options.empty()) return {};
  const GivenValue& last = line.options.back();
  const bool may_be_program =
      last.flag->value == ValueKind::kRequired && last.text.find_first_of("./") != std::string::npos;
  return may_be_program
             ? fmt::format("'{1}' took '{0}' as its value: is a variable empty? PROGRAM stands behind the value",
                           last.text, last.origin)
             : std::string();
}

/// PROGRAM and its arguments. torchrun drops the first '--' of the line, even right after the script. lrun leaves the
/// arguments of PROGRAM unchanged.
std::vector<std::string> command_in(const std::vector<std::string>& words, const SpelledLine& line, Compat compat) {
  std::vector<std::string> command(words.begin() + static_cast<std::ptrdiff_t>(line.program), words.end());
  if (command.empty()) {
    std::string hint = hint_about_taken_program(line);
    if (hint.empty()) hint = "usage: lrun [options] [--] PROGRAM [ARGS...]; 'lrun -h' shows the options";
    throw UserError("no PROGRAM to run", std::move(hint));
  }
  if (command.front().empty()) {
    throw UserError("the name of PROGRAM is empty", "an unset variable in quotes gives an empty word");
  }
  if (compat == Compat::kTorchrun && !line.double_dash && command.size() > 1 && command[1] == "--") {
    command.erase(command.begin() + 1);
  }
  return command;
}

}  // namespace

void apply_all(const std::vector<GivenValue>& values, LaunchRequest& request) {
  const bool standalone = asks_for_standalone(values);
  for (const GivenValue& given : values) {
    if (standalone && given.flag->overridden_by_standalone) continue;
    if (given.flag->apply != nullptr) given.flag->apply(given, request);
  }
}

ParsedCommandLine parse_command_line(const std::vector<std::string>& argv, const Environment& environment,
                                     const ReadFile& read_file) {
  const std::vector<std::string> words(argv.begin() + (argv.empty() ? 0 : 1), argv.end());
  ParsedCommandLine parsed;
  parsed.request.compat = compat_of_name(argv);
  std::vector<GivenValue> from_environment = values_from_environment(environment);
  for (const GivenValue& given : from_environment) {
    // LRUN_COMPAT decides whether there are verbs, so it is needed before any option is read.
    if (given.flag->name == "compat") given.flag->apply(given, parsed.request);
  }
  if (const Verb* const verb = verb_of(words, parsed.request.compat)) {
    parsed.action = LineAction::kVerb;
    parsed.verb = parse_verb(*verb, {words.begin() + 1, words.end()});
    return parsed;
  }

  const SpelledLine line = spell_out(words, compat_of_name(argv));
  parsed.action = action_of(line);
  const bool is_help = parsed.action == LineAction::kShortHelp || parsed.action == LineAction::kLongHelp;
  const bool has_word = is_help && line.program < words.size();  // 'lrun --help logs'
  if (const Verb* const verb = has_word ? verb_of({words[line.program]}, parsed.request.compat) : nullptr) {
    parsed.action = LineAction::kVerb;
    parsed.verb = parse_verb(*verb, {"--help"});
  }
  if (parsed.action != LineAction::kLaunch && parsed.action != LineAction::kPrintConfig) return parsed;
  parsed.warnings = warn_about_unknown_variables(environment);
  OptionValues on_line = collect_values(line.options);
  std::move(on_line.warnings.begin(), on_line.warnings.end(), std::back_inserter(parsed.warnings));
  const GivenValue* const in_environment = find_config_file(from_environment);
  const GivenValue* const asked_for = find_config_file(on_line.given);
  Values from_file = values_from_config(asked_for != nullptr ? asked_for : in_environment, environment, read_file);
  const bool is_default = asked_for == nullptr && in_environment == nullptr && !environment.has("LRUN_RUN_ID");
  if (from_file.empty() && is_default) {
    std::vector<std::string> unread = warn_about_other_formats(read_file);
    std::move(unread.begin(), unread.end(), std::back_inserter(parsed.warnings));
  }
  parsed.settings = decide({&from_file, &from_environment, &on_line.given});
  apply_all(parsed.settings, parsed.request);
  if (parsed.action == LineAction::kPrintConfig) return parsed;
  parsed.request.command = command_in(words, line, parsed.request.compat);
  if (is_default && from_file.empty())
    parsed.note = note_config_elsewhere(parsed.request.command.front(), environment, read_file);
  return parsed;
}

}  // namespace lrun::launcher
