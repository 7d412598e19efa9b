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
#include "plan/rank_ranges.h"

namespace lrun::launcher {

// Functions with which the rows of the flag table read their values. Every UserError names the value as it was written.

/// Always throws. \throws UserError  "'--flag value': problem" or "lrun.toml:3: 'flag = value': problem"
[[noreturn]] void refuse(const GivenValue& given, const std::string& problem, const std::string& hint);

/// For a value that is no file: an option behind which an empty variable of the shell stands has taken the next word,
/// as in 'lrun -n $N train.py'. \throws UserError  the value looks like PROGRAM
void refuse_program_as_value(const GivenValue& given);

/// \throws UserError  the value is a URL, which needs `hint`, or begins with a '~' that no shell has replaced
void refuse_other_than_path(const GivenValue& given, const std::string& hint);

/// "for example '--flag value'", for hints.
std::string example(const GivenValue& given, std::string_view value);

/// Always throws. \throws UserError  `problem`, with the choice nearest to the value, or the row's hint, or an example
/// with `instead`
[[noreturn]] void refuse_choice(const GivenValue& given, const std::string& problem,
                                const std::vector<std::string>& choices, std::string_view instead);

/// One of the row's choices, in any case. \throws UserError  it is not one of them
std::string choice_of(const GivenValue& given);

/// The value of one of the row's choices, or of another word of `table`. \throws UserError  as choice_of()
template <class Enumeration, std::size_t count>
Enumeration choice_in(const NamedValue<Enumeration> (&table)[count], const GivenValue& given) {
  const auto value = value_in(table, lower_case(given.text));
  return value ? *value : *value_in(table, choice_of(given));
}

/// True for a switch that was given as an option. A variable or a file may also have 0, false, no or off.
bool switch_value(const GivenValue& given);

/// A time such as '30s'. \throws UserError  it is not a time
Duration duration_of(const GivenValue& given);

/// A time above zero, or zero for 'none'. \throws UserError  it is neither
Duration limit_of(const GivenValue& given);

/// Words as a shell would split them, at least one. \param right  an example
/// \throws UserError  a quote is not closed, or the first word is empty
std::vector<std::string> command_of(const GivenValue& given, const std::string& right);

/// The ranks of '--wrap@0,2-3'; empty: all. \throws UserError  they are no list of ranks
RankRanges ranks_of(const GivenValue& given);

/// \throws UserError  the value is empty or blank
void require_text(const GivenValue& given, const char* problem, std::string_view right);

/// `text` as a number, with blanks around it as in Python. Empty when it is not a number.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  return whole_number<Number>(trimmed(text));
}

/// A whole number from `least` to `most`. \throws UserError  it is not such a number
template <class Number>
Number number_between(const GivenValue& given, Number least, Number most) {
  const auto number = number_in<Number>(given.text);
  if (number && *number >= least && *number <= most) return *number;
  refuse_program_as_value(given);
  const bool is_digits = !given.text.empty() && given.text.find_first_not_of("0123456789") == std::string::npos;
  const bool too_large = number ? *number > most : is_digits;
  const std::string near =
      !given.flag->example.empty() ? std::string(given.flag->example) : std::to_string(too_large ? most : least);
  refuse(given,
         std::string(number || is_digits ? "out of range" : "not a whole number") +
             "; allowed: " + std::to_string(least) + " to " + std::to_string(most),
         example(given, near));
}

/// The value with its source.
template <class T>
Setting<T> setting(const GivenValue& given, T value) {
  return {std::move(value), given.source, given.place.empty() ? given.origin : given.place + ": " + given.origin};
}

// Functions for Flag::apply whose template arguments name the field of LaunchRequest that takes the value:
// `.apply = set_switch<&LaunchRequest::output, &OutputRequest::pty>` sets request.output.pty.

template <auto member, auto... members>
auto& field_of(auto& object) {
  if constexpr (sizeof...(members) == 0) {
    return object.*member;
  } else {
    return field_of<members...>(object.*member);
  }
}

template <class T, class Value>
void assign(Setting<T>& field, const GivenValue& given, Value value) {
  field = setting<T>(given, T(std::move(value)));
}
template <class T, class Value>
void assign(T& field, const GivenValue& /*given*/, Value value) {
  field = std::move(value);
}

/// true or false
template <auto... path>
void set_switch(const GivenValue& given, LaunchRequest& request) {
  assign(field_of<path...>(request), given, switch_value(given));
}

/// any text
template <auto... path>
void set_text(const GivenValue& given, LaunchRequest& request) {
  assign(field_of<path...>(request), given, given.text);
}

/// a whole number from `least` to `most`
template <auto least, auto most, auto... path>
void set_number(const GivenValue& given, LaunchRequest& request) {
  assign(field_of<path...>(request), given, number_between<decltype(most)>(given, least, most));
}

/// a time; the row has an `example`
template <auto... path>
void set_time(const GivenValue& given, LaunchRequest& request) {
  assign(field_of<path...>(request), given, duration_of(given));
}

/// a time above zero; zero stands for 'none'
template <auto... path>
void set_limit(const GivenValue& given, LaunchRequest& request) {
  assign(field_of<path...>(request), given, limit_of(given));
}

/// the value of a word in `table`; the row has the `noun` for these words
template <const auto& table, auto... path>
void set_choice(const GivenValue& given, LaunchRequest& request) {
  assign(field_of<path...>(request), given, choice_in(table, given));
}

}  // namespace lrun::launcher
