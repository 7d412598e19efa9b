#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/split.h"
#include "base/whole_number.h"
#include "cli/flags.h"
#include "plan/named_value.h"

namespace lrun::launcher {

// What the functions of flag_values.h read their values with.

/// \throws UserError  "'--flag value': problem" or "lrun.toml:3: 'flag = value': problem", always.
[[noreturn]] void refuse(const GivenValue& given, const std::string& problem, const std::string& hint);

/// "for example '--flag value'", for hints.
std::string example(const GivenValue& given, std::string_view value);

/// \throws UserError  `problem`, with the choice nearest to the value, or an example with `instead`; always.
[[noreturn]] void refuse_choice(const GivenValue& given, const std::string& problem,
                                const std::vector<std::string>& choices, std::string_view instead);

/// One of the row's choices, in any case. \throws UserError  none of them; `noun` says what they are.
std::string choice_of(const GivenValue& given, const std::string& noun);

/// The value for one of the row's choices, or for another word of `table`. \throws UserError  as choice_of()
template <class Enumeration, std::size_t count>
Enumeration choice_in(const NamedValue<Enumeration> (&table)[count], const GivenValue& given, const std::string& noun) {
  const auto value = value_in(table, lower_case(given.text));
  return value ? *value : *value_in(table, choice_of(given, noun));
}

/// One digit or more, and nothing else.
bool is_digits(const std::string& text);

/// \throws UserError  not a time; `example`, one that is, goes into the hint.
Duration duration_of(const GivenValue& given, const std::string& example);

/// The number that all of `text` is, but for blanks around it, as Python reads those of torchrun. Empty: it is none.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  return whole_number<Number>(trimmed(text));
}

/// A whole number from `least` to `most`. \throws UserError  anything else.
template <class Number>
Number number_between(const GivenValue& given, Number least, Number most) {
  const auto number = number_in<Number>(given.text);
  if (number && *number >= least && *number <= most) return *number;
  const bool too_large = !number && is_digits(given.text);
  refuse(given,
         std::string(number || too_large ? "out of range" : "not a whole number") +
             "; allowed: " + std::to_string(least) + " to " + std::to_string(most),
         "for example '" +
             given.as_written_with(std::to_string(too_large || (number && *number > most) ? most : least)) + "'");
}

/// The value with where it came from.
template <class T>
Setting<T> setting(const GivenValue& given, T value) {
  return {std::move(value), given.source, given.place.empty() ? given.origin : given.place + ": " + given.origin};
}

}  // namespace lrun::launcher
