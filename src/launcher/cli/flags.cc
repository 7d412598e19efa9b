#include "cli/flags.h"

#include <algorithm>

#include "cli/toml_text.h"

namespace lrun::launcher {
namespace {

char upper(char letter) { return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter; }

}  // namespace

std::string GivenValue::as_written() const { return as_written_with(text); }

std::string GivenValue::as_written_with(std::string_view value) const {
  if (source == Source::kConfig) return toml_key(origin) + " = " + toml_value(value);
  if (source == Source::kEnvironment) return origin + "=" + std::string(value);
  if (flag->value == ValueKind::kNone) return origin;
  return origin + (flag->value == ValueKind::kOptional || value.empty() ? "=" : " ") + std::string(value);
}

std::string GivenValue::quoted() const { return (place.empty() ? "'" : place + ": '") + as_written() + "'"; }

const Flag* find_flag(std::string_view name) {
  const auto flags = flag_table();
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
  return found == flags.end() ? nullptr : &*found;
}

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (end > 0) words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

std::vector<std::string> long_names_of(const Flag& flag) {
  std::vector<std::string> names{"--" + std::string(flag.name)};
  for (const std::string_view alias : words_of(flag.aliases)) names.push_back("--" + std::string(alias));
  return names;
}

std::string lrun_variable_of(const Flag& flag) {
  if (!flag.lrun_variable) return {};
  std::string variable = "LRUN_";
  for (const char letter : flag.name) variable += letter == '-' ? '_' : upper(letter);
  return variable;
}

std::string_view title_of(FlagGroup group) {
  switch (group) {
    case FlagGroup::kWorkers:
      return "Workers and devices";
    case FlagGroup::kTraining:
      return "Training";
    case FlagGroup::kNodes:
      return "Several nodes";
    case FlagGroup::kProgram:
      return "Program";
    case FlagGroup::kOutput:
      return "Output";
    case FlagGroup::kRun:
      return "Run";
    case FlagGroup::kInformation:
      return "Information";
    case FlagGroup::kNotInThisVersion:
      return "Not in this version";
  }
  return {};
}

std::string folded_name(std::string_view name) {
  std::string folded(name);
  std::replace(folded.begin(), folded.end(), '_', '-');
  return folded;
}

}  // namespace lrun::launcher
