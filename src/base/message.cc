#include "base/message.h"

#include <unistd.h>

#include <cstdlib>

namespace lrun {
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
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 0xfU]};
    } else {
      result += letter;
    }
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

bool takes_colour(int fd) {
  const char* const no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb" && ::isatty(fd) == 1;
}

}  // namespace lrun
