#include "cli/option_values.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include "base/user_error.h"

namespace lrun::launcher {
namespace {

/// The words as CLI11 reads them safely. A value is passed as '--name==value', so that it always begins with '=':
/// CLI11 2.1 takes the next word for an empty value and splits one in brackets. '--' ends the options in any case.
std::vector<std::string> reversed_words(const SpelledLine& line, const std::vector<std::string>& words) {
  std::vector<std::string> reversed(words.rbegin(), words.rend() - static_cast<std::ptrdiff_t>(line.program));
  reversed.emplace_back("--");
  for (auto option = line.options.rbegin(); option != line.options.rend(); ++option) {
    const std::string name = "--" + std::string(option->flag->name);
    reversed.push_back(option->flag->value == ValueKind::kNone ? name : name + "==" + option->value);
  }
  return reversed;
}

/// \param last  as it stands on the line; of a switch empty unless it says '=0' or '=1'.
std::string value_in(const Flag& flag, const CLI::Option& option, const SpelledLine::Option& last) {
  if (flag.value != ValueKind::kNone) return option.results().back().substr(1);
  return last.value.empty() ? std::to_string(option.count()) : last.value;
}

void append_all(const Flag& flag, const SpelledLine& line, std::vector<GivenValue>& values) {
  for (const SpelledLine::Option& option : line.options) {
    if (option.flag != &flag) continue;
    values.push_back({&flag, option.value, Source::kFlag, option.origin, {}, option.ranks});
  }
}

/// Whether two values of a flag ask for the same: '30' and '30s'.
bool ask_for_the_same(const Flag& flag, const std::string& one, const std::string& other) {
  if (one == other) return true;
  if (flag.apply == nullptr) return false;
  try {
    LaunchRequest of_one;
    LaunchRequest of_other;
    flag.apply({&flag, one, Source::kFlag, {}}, of_one);
    flag.apply({&flag, other, Source::kFlag, {}}, of_other);
    return of_one == of_other;
  } catch (const UserError&) {
    return false;
  }
}

/// As it stands on the line: '--devices 2', '--core=0'.
std::string as_typed(const SpelledLine::Option& option) {
  const bool is_switch = option.flag->value == ValueKind::kNone;
  if (is_switch) return option.value.empty() ? option.origin : option.origin + "=" + option.value;
  return GivenValue{option.flag, option.value, Source::kFlag, option.origin}.as_written();
}

/// Somebody who appends to a line that was made elsewhere means the last; one who has not seen the first may not.
std::string warn_about_second(const SpelledLine::Option& last, const SpelledLine& line) {
  for (const SpelledLine::Option& option : line.options) {
    if (option.flag != last.flag || ask_for_the_same(*last.flag, option.value, last.value)) continue;
    return "'" + as_typed(option) + "' and '" + as_typed(last) + "' are both given: the last one counts";
  }
  return {};
}

}  // namespace

OptionValues collect_values(const SpelledLine& line, const std::vector<std::string>& words) {
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();  // and no positionals: with them CLI11 2.1 loses words of the program
  // Only what appears is registered: the whole table would cost more than the rest of the parsing.
  std::map<const Flag*, std::pair<CLI::Option*, const SpelledLine::Option*>> options;
  for (const SpelledLine::Option& option : line.options) {
    auto& [registered, last] = options[option.flag];
    last = &option;
    if (registered != nullptr) continue;
    const std::string name = "--" + std::string(option.flag->name);
    registered = option.flag->value == ValueKind::kNone ? app.add_flag(name) : app.add_option(name);
    registered->take_all();
  }
  app.parse(reversed_words(line, words));

  OptionValues values;
  for (const auto& [flag, registered] : options) {
    if (flag->repeatable) {
      append_all(*flag, line, values.given);
      continue;
    }
    const auto& [option, last] = registered;
    values.given.push_back({flag, value_in(*flag, *option, *last), Source::kFlag, last->origin});
    if (std::string warning = warn_about_second(*last, line); !warning.empty()) {
      values.warnings.push_back(std::move(warning));
    }
  }
  values.command = app.remaining();
  // CLI11 2.1 keeps the '--' in front of the program among the remaining words, later releases may not.
  const std::size_t extra = values.command.size() - (words.size() - line.program);
  values.command.erase(values.command.begin(), values.command.begin() + static_cast<std::ptrdiff_t>(extra));
  return values;
}

}  // namespace lrun::launcher
