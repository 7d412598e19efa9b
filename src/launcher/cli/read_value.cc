#include "cli/read_value.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"

namespace lrun::launcher {

void refuse(const GivenValue& given, const std::string& problem, const std::string& hint) {
  throw UserError(given.quoted() + ": " + problem, hint);
}

std::string example(const GivenValue& given, std::string_view value) {
  return "for example '" + given.as_written_with(value) + "'";
}

void refuse_choice(const GivenValue& given, const std::string& problem, const std::vector<std::string>& choices,
                   std::string_view instead) {
  throw choice_error(given.quoted() + ": " + problem, lower_case(given.text), choices, example(given, instead));
}

std::string choice_of(const GivenValue& given, const std::string& noun) {
  const auto words = words_of(given.flag->choices);
  const std::vector<std::string> choices(words.begin(), words.end());
  std::string word = lower_case(given.text);
  if (std::find(choices.begin(), choices.end(), word) != choices.end()) return word;
  refuse_choice(given, "no such " + noun + "; allowed: " + join_words(choices, ", "), choices, choices.front());
}

bool is_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

Duration duration_of(const GivenValue& given, const std::string& example) {
  if (const auto duration = parse_duration(given.text)) return *duration;
  refuse(given, "not a time; allowed: a number with ms, s, m, h or d",
         "for example '" + given.as_written_with(example) + "'");
}

}  // namespace lrun::launcher
