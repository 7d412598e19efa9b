#include "base/message.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "base/utf8.h"

namespace lrun::inline core {
namespace {

struct Style {
  std::string_view word;
  std::string_view colour;  ///< an ANSI sequence: bold red, yellow, cyan, green
};

Style style_of(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return {"error", "\x1b[1;31m"};
    case Severity::kWarning:
      return {"warning", "\x1b[1;33m"};
    case Severity::kNote:
      return {"note", "\x1b[1;36m"};
    case Severity::kHint:
      return {"hint", "\x1b[1;32m"};
  }
  return {};
}

/// The user's text may hold anything; on a terminal it must not move the cursor or begin a line of its own.
std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto [character, bytes] = first_character(text);
    if (bytes == 0) {
      result += written_out_byte(static_cast<unsigned char>(text.front()));
    } else if (character == '\n') {
      result += "\\n";
    } else {
      const std::string other = written_out(character);
      result += other.empty() ? text.substr(0, bytes) : std::string_view(other);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

}  // namespace

std::string message_line(Severity severity, std::string_view text, bool colour) {
  const Style style = style_of(severity);
  std::string line = "lrun: ";
  if (colour) line += style.colour;
  line += style.word;
  line += ": ";
  if (colour) line += "\x1b[0m";
  return line + printable(text) + "\n";
}

bool wants_colour() {
  const char* const no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

bool takes_colour(int fd) { return wants_colour() && ::isatty(fd) == 1; }

}  // namespace lrun::inline core
