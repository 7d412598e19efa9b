// In: the value of an option, as text. Out: what it means, or a UserError that quotes it and says what to type. The
// tables of options name these functions.
#include "cli/read_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/shell_words.h"
#include "base/split.h"
#include "base/user_error.h"

namespace lrun::launcher {

void refuse(const GivenValue& given, const std::string& problem, const std::string& hint) {
  const std::string pasted = hint_about_pasted_blank(given.text);
  const bool is_empty = given.text.empty() && given.source == Source::kFlag;
  const std::string_view begin = is_empty ? "is a variable empty? " : "";
  throw UserError(given.quoted() + ": " + problem, pasted.empty() ? std::string(begin) + hint : pasted);
}

void refuse_program_as_value(const GivenValue& given) {
  const bool may_be_program = given.text.ends_with(".py") || given.text.starts_with("./");
  const bool is_word =
      given.text.find_first_of(" '\"") == std::string::npos && hint_about_pasted_blank(given.text).empty();
  if (given.source != Source::kFlag || !may_be_program || !is_word) return;
  const std::string_view all = given.flag->placeholder;
  const std::string_view value = all.substr(0, all.find('|'));  // of 'N|MIN:MAX' the first, of 'none|core' no word
  const bool is_placeholder = !value.empty() && value.front() <= 'Z';
  throw UserError(fmt::format("'{}' has no value: '{}' stands in its place", given.origin, given.text),
                  is_placeholder
                      ? fmt::format("is a variable empty? write 'lrun {} {}'", given.as_written_with(value), given.text)
                      : "is a variable empty? PROGRAM stands behind the value");
}

std::string example(const GivenValue& given, std::string_view value) {
  return "for example '" + given.as_written_with(value) + "'";
}

void refuse_other_than_path(const GivenValue& given, const std::string& hint) {
  if (given.text.find("://") != std::string::npos) refuse(given, "a URL, and no folder of this host", hint);
  if (!given.text.starts_with("~/")) return;
  refuse(given, "a shell replaces '~' only where a word begins with it, and outside of quotes", "write the whole path");
}

void refuse_choice(const GivenValue& given, const std::string& problem, const std::vector<std::string>& choices,
                   std::string_view instead) {
  if (!hint_about_pasted_blank(given.text).empty()) refuse(given, problem, {});
  if (given.text.ends_with(".py")) refuse_program_as_value(given);  // './logs' may be a folder
  const std::string word = lower_case(given.text);
  // 'deepspeed_stage_2' is Lightning's, and 'deepspeed' what lrun has to know of it.
  const auto begun = std::find_if(choices.begin(), choices.end(),
                                  [&](const std::string& choice) { return word.starts_with(choice + "_"); });
  if (begun != choices.end()) throw UserError(given.quoted() + ": " + problem, did_you_mean(*begun));
  const std::string otherwise(given.flag->hint);
  throw choice_error(given.quoted() + ": " + problem, word, choices,
                     otherwise.empty() ? example(given, instead) : otherwise);
}

std::string choice_of(const GivenValue& given) {
  const auto words = words_of(given.flag->choices);
  const std::vector<std::string> choices(words.begin(), words.end());
  std::string word = lower_case(given.text);
  if (std::find(choices.begin(), choices.end(), word) != choices.end()) return word;
  refuse_choice(given, "unknown " + std::string(given.flag->noun) + "; allowed: " + join_words(choices, ", "), choices,
                choices.front());
}

bool switch_value(const GivenValue& given) {
  // Kubeflow writes PET_STANDALONE="", and torchrun takes that for true.
  constexpr NamedValue<bool> kWords[] = {{"", true},   {"1", true},      {"true", true}, {"yes", true}, {"on", true},
                                         {"0", false}, {"false", false}, {"no", false},  {"off", false}};
  const std::string word = lower_case(given.text);
  if (const auto value = value_in(kWords, word)) return *value;
  if (const auto times = number_in<long>(word)) return *times != 0;  // the number of times that the switch was given
  refuse(given, "neither true nor false; allowed: 1, true, 0, false", example(given, "1"));
}

namespace {

/// '5m' for '5mins' or '5 minutes'. Empty where that is no time either.
std::string with_short_unit(std::string_view text) {
  std::string time;
  for (const char letter : lower_case(std::string(text))) {
    const bool is_digit = letter >= '0' && letter <= '9';
    if (is_digit || (letter != ' ' && (time.empty() || time.back() <= '9'))) time += letter;
  }
  return text.find("ms") == std::string_view::npos && parse_duration(time) ? time : std::string();
}

/// '00h05m00s' for Slurm's '00:05:00'; any other text as it is.
std::string with_units(std::string_view text) {
  constexpr std::string_view kUnits = "smh";
  auto colons = static_cast<std::size_t>(std::count(text.begin(), text.end(), ':'));
  if (colons == 0 || colons >= kUnits.size()) return std::string(text);
  std::string time;
  for (std::string_view rest = text; !rest.empty(); --colons) {
    const std::string_view field = cut(rest, ':');
    if (field.empty()) return std::string(text);
    time += std::string(field) + kUnits[colons];
  }
  return time;
}

/// '90m' for '1h30m', '5m' for '00:05:00'. Empty where that is no time either.
std::string sum_of_parts(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const std::string time = with_units(text);
  Duration sum{};
  for (std::string_view rest = time; !rest.empty();) {
    const std::size_t unit = std::min(rest.find_first_not_of(kDigits), rest.size());
    const std::size_t end = std::min(rest.find_first_of(kDigits, unit), rest.size());
    const auto part = parse_duration(rest.substr(0, end));
    if (!part || unit == end) return {};
    sum += *part;
    rest.remove_prefix(end);
  }
  return format_duration(sum);
}

}  // namespace

Duration duration_of(const GivenValue& given) {
  if (const auto duration = parse_duration(given.text)) return *duration;
  refuse_program_as_value(given);
  const std::string_view text = given.text;
  const std::size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
  if (unit > 0 && parse_duration("1" + std::string(text.substr(unit)))) {
    refuse(given, "too long; allowed: up to 3650d, which is ten years", example(given, given.flag->example));
  }
  std::string meant = with_short_unit(text);
  if (meant.empty()) meant = sum_of_parts(text);
  refuse(given, "not a time; allowed: a number with ms, s, m, h or d",
         meant.empty() ? example(given, given.flag->example) : did_you_mean(given.as_written_with(meant)));
}

Duration limit_of(const GivenValue& given) {
  if (given.text == "none") return Duration::zero();
  const Duration limit = duration_of(given);
  if (limit == Duration::zero()) refuse(given, "zero is not a time limit", "use 'none' for no limit");
  return limit;
}

std::vector<std::string> command_of(const GivenValue& given, const std::string& right) {
  auto words = split_shell_words(given.text);
  if (!words) refuse(given, "unbalanced quote or trailing backslash", "quote as in a shell");
  if (words->empty() || words->front().empty()) {
    refuse(given, "the name of a program is missing",
           example(given, given.source == Source::kFlag ? "\"" + right + "\"" : right));
  }
  return std::move(*words);
}

RankRanges ranks_of(const GivenValue& given) {
  if (given.origin.find('@') == std::string::npos) return {};
  if (std::optional<RankRanges> ranks = parse_ranks(given.ranks)) return *std::move(ranks);
  refuse(given, "not a list of ranks behind '@'",
         fmt::format("for example '--{0}@0' or '--{0}@0,2-3'", given.flag->name));
}

void require_text(const GivenValue& given, const char* problem, std::string_view right) {
  if (trimmed(given.text).empty()) refuse(given, problem, example(given, right));
}

}  // namespace lrun::launcher
