#include "logs/terminal_text.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace lrun::launcher {
namespace {

/// Length of "intermediate bytes, then one final byte" from `start` on; a control or non-ASCII byte is not part of it.
std::size_t sequence_length(std::string_view text, std::size_t start, char first_final) {
  while (start < text.size() && text[start] >= ' ' && text[start] < first_final) ++start;
  const bool ended = start < text.size() && text[start] >= first_final && text[start] <= '~';
  return ended ? start + 1 : start;
}

/// Length of the escape sequence at the start of `text`, which begins with ESC. One that is cut off reaches to the end.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  constexpr std::string_view kStrings = "]P_^X";  // OSC, DCS, APC, PM, SOS: up to BEL or ESC '\\'
  if (text[1] == '[') return sequence_length(text, 2, '@');
  if (kStrings.find(text[1]) == std::string_view::npos) return sequence_length(text, 1, '0');
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (text[i] == '\a') return i + 1;
    if (text[i] == '\x1b') return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 : i;
  }
  return text.size();
}

}  // namespace

std::string terminal_safe(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    if (text.front() == '\x1b') {
      text.remove_prefix(escape_length(text));
      continue;
    }
    const auto [character, bytes] = first_character(text);
    if (bytes == 0) {
      safe += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    const std::string other = character == '\t' ? std::string() : written_out(character);
    safe.append(other.empty() ? text.substr(0, bytes) : std::string_view(other));
    text.remove_prefix(bytes);
  }
  return safe;
}

std::string_view drawn_last(std::string_view line) {
  const std::size_t last = line.find_last_not_of("\r\n");
  if (last == std::string_view::npos) return line;
  const std::size_t start = line.rfind('\r', last);
  return start == std::string_view::npos ? line : line.substr(start + 1);
}

std::string fitted(std::string_view text, int columns) {
  std::size_t at = 0;
  std::size_t last = 0;  ///< where the character in the last column begins
  for (int used = 0; at < text.size();) {
    if (text[at] == '\x1b') {
      at += escape_length(text.substr(at));
      continue;
    }
    if (++used > columns) return std::string(text.substr(0, last)) + (columns > 0 ? "…\x1b[0m" : "\x1b[0m");
    last = at;
    at += std::max<std::size_t>(first_character(text.substr(at)).bytes, 1);
  }
  return std::string(text);
}

}  // namespace lrun::launcher
