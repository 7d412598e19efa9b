#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// A value of an enumeration and the word for it, as an option takes it and messages show it. A table of these may have
/// several words for one value; the first is the one that is shown.
template <class Enumeration>
struct NamedValue {
  std::string_view name;
  Enumeration value;
};

/// The word for `value`, which is in the table.
template <class Enumeration, std::size_t count>
std::string name_in(const NamedValue<Enumeration> (&table)[count], Enumeration value) {
  for (const auto& [name, named] : table) {
    if (named == value) return std::string(name);
  }
  return {};
}

/// The value for a word. Empty: the word is not in the table.
template <class Enumeration, std::size_t count>
std::optional<Enumeration> value_in(const NamedValue<Enumeration> (&table)[count], std::string_view word) {
  for (const auto& [name, named] : table) {
    if (name == word) return named;
  }
  return std::nullopt;
}

}  // namespace lrun::launcher
