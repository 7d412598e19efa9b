// Gives a line's values to CLI11. SpelledLine has read the words by torchrun's grammar; here each option of the line
// becomes a CLI::Option that takes the values as results and decides which of them count. parse_command_line() calls
// it.
#include "cli/option_values.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "base/user_error.h"

namespace lrun::launcher {
namespace {

/// Compares meanings: '30' and '30s' are the same to --grace.
bool mean_the_same(const GivenValue& one, const GivenValue& other) {
  if (one.text == other.text) return true;
  if (one.flag->apply == nullptr) return false;
  try {
    // Without origins, which would differ.
    LaunchRequest of_one;
    LaunchRequest of_other;
    one.flag->apply({one.flag, one.text}, of_one);
    one.flag->apply({one.flag, other.text}, of_other);
    return of_one == of_other;
  } catch (const UserError&) {
    return false;
  }
}

/// '--devices 2', '--core=0'.
std::string as_typed(const GivenValue& given) {
  const bool is_switch = given.flag->value == ValueKind::kNone;
  return is_switch && !given.text.empty() ? given.origin + "=" + given.text : given.as_written();
}

using Occurrences = std::vector<GivenValue>;

/// The last value counts, as users expect who append to a line from a script. Users who have overlooked the first value
/// need the warning.
std::string warn_about_second(const Occurrences& all) {
  for (const GivenValue& given : all) {
    if (mean_the_same(given, all.back())) continue;
    const std::string_view list = given.flag->name == "hosts" ? "; several hosts are one word: '-H A,B'" : "";
    return "'" + as_typed(given) + "' and '" + as_typed(all.back()) + "' are both given: the last one counts" +
           std::string(list);
  }
  return {};
}

void keep_counted(const Occurrences& all, std::size_t counted, OptionValues& values) {
  const Flag& flag = *all.front().flag;
  values.given.insert(values.given.end(), all.end() - static_cast<std::ptrdiff_t>(counted), all.end());
  if (flag.repeatable) return;
  std::string& text = values.given.back().text;
  if (flag.value == ValueKind::kNone && text.empty()) text = std::to_string(flag.counted ? all.size() : 1);
  if (std::string warning = warn_about_second(all); !warning.empty()) values.warnings.push_back(std::move(warning));
}

}  // namespace

OptionValues collect_values(const std::vector<GivenValue>& line) {
  using Policy = CLI::MultiOptionPolicy;
  OptionValues values;
  std::map<const Flag*, Occurrences> occurrences;  // in the table's order
  for (const GivenValue& given : line) occurrences[given.flag].push_back(given);
  CLI::App app;
  app.set_help_flag();  // -h and --help are rows of our table
  // Only options that were given are defined: defining the whole table would cost more than the rest of the parsing.
  for (const auto& [flag, all] : occurrences) {
    const CLI::callback_t keep = [&values, &all = all](const CLI::results_t& counted) {
      keep_counted(all, std::min(counted.size(), all.size()), values);
      return true;
    };
    CLI::Option* const option = app.add_option("--" + std::string(flag->name), keep);
    option->multi_option_policy(flag->repeatable ? Policy::TakeAll : Policy::TakeLast);
    for (const GivenValue& given : all) option->add_result(given.text);
  }
  app.parse(std::vector<std::string>());  // no word is left; this calls the options' functions
  return values;
}

}  // namespace lrun::launcher
