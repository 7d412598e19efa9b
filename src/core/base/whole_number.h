#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace lrun::inline core {

/// `text` as a number: decimal digits, with '-' before them where `Number` has a sign. \return empty: it has other
/// characters, or does not fit.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(number) : std::nullopt;
}

/// The same for a rank, a count, a pid: 0 or more, without a sign.
inline std::optional<int> natural_number(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : whole_number<int>(text);
}

}  // namespace lrun::inline core
