#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// The part of `rest` before `separator`, or all of it; that part and the separator are cut off `rest`.
inline std::string_view cut(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

/// `text` without the blanks at both ends.
inline std::string_view trimmed(std::string_view text, std::string_view blanks = " \t") {
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// With the letters A to Z small, whatever the locale.
inline std::string lower_case(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

/// The lines of a text without their ends; an end after the last line begins no further one.
inline std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) lines.emplace_back(cut(text, '\n'));
  return lines;
}

/// The last line of a text that is not blank, without the blanks at its ends; empty where all are.
inline std::string_view last_line_of(std::string_view text) {
  const std::string_view rest = trimmed(text, " \t\r\n");
  return trimmed(rest.substr(rest.rfind('\n') + 1));
}

/// The fields of a list with commas, empty ones too; an empty text is one empty field.
inline std::vector<std::string> fields_of(std::string_view list) {
  std::vector<std::string> fields;
  for (bool more = true; more;) {
    more = list.find(',') != std::string_view::npos;
    fields.emplace_back(cut(list, ','));
  }
  return fields;
}

}  // namespace lrun::inline core
