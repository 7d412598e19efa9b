// The flag table, joined from the groups' files, and the names that follow from a row. Parser, help, print_config, the
// check of the man page and the completions go through it.
#include "cli/flags.h"

#include <algorithm>

#include "cli/flag_groups.h"
#include "cli/toml_text.h"

namespace lrun::launcher {
namespace {

/// 'NUM_NODES' of 'num-nodes'.
std::string variable_part(std::string_view name) {
  std::string part(name);
  for (char& letter : part) {
    if (letter == '-') letter = '_';
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return part;
}

std::vector<Flag> joined_groups() {
  std::vector<Flag> flags;
  for (const auto group : {worker_flags, training_flags, node_flags, program_flags, output_flags, run_flags,
                           information_flags, torchruns_flags}) {
    flags.insert(flags.end(), group().begin(), group().end());
  }
  return flags;
}

}  // namespace

std::span<const Flag> flag_table() {
  static const std::vector<Flag> flags = joined_groups();
  return flags;
}

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

const Flag* find_long_flag(std::string_view name) {
  const std::string folded = folded_name(name);
  for (const Flag& flag : flag_table()) {
    for (const std::string& candidate : long_names_of(flag)) {
      if (folded_name(candidate) == folded) return &flag;
    }
  }
  return nullptr;
}

const Flag* find_short_flag(std::string_view name) {
  for (const Flag& flag : flag_table()) {
    for (const std::string_view short_name : words_of(flag.short_names)) {
      if (short_name == name) return &flag;
    }
  }
  return nullptr;
}

std::string lrun_variable_of(const Flag& flag) {
  return flag.lrun_variable ? "LRUN_" + variable_part(flag.name) : std::string();
}

std::string torchrun_variable_of(const Flag& flag) {
  if (!flag.torchrun_variable) return {};
  const auto aliases = words_of(flag.aliases);
  return "PET_" + variable_part(aliases.empty() ? flag.name : aliases.back());
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
      return "Options of torchrun";
  }
  return {};
}

std::string folded_name(std::string_view name) {
  std::string folded(name);
  std::replace(folded.begin(), folded.end(), '_', '-');
  return folded;
}

}  // namespace lrun::launcher
