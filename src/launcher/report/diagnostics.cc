#include "report/diagnostics.h"

#include <unistd.h>

#include <cstring>
#include <exception>

#include "base/fd.h"
#include "report/head_channel.h"

namespace lrun::launcher {

std::string render(const UserError& error, bool colour) {
  std::string lines = message_line(Severity::kError, error.what(), colour);
  if (!error.hint().empty()) lines += message_line(Severity::kHint, error.hint(), colour);
  return lines;
}

void say(Severity severity, std::string_view text) noexcept {
  if (speaks_through_head()) return tell_head(severity, text);
  try {
    (void)write_all(STDERR_FILENO, message_line(severity, text, takes_colour(STDERR_FILENO)));
  } catch (const std::exception&) {
    (void)write_all(STDERR_FILENO, "lrun: error: out of memory\n");
  }
}

void say(const UserError& error) noexcept {
  say(Severity::kError, error.what());
  if (!error.hint().empty()) say(Severity::kHint, error.hint());
}

void write_to_stderr(std::string_view text) noexcept {
  if (speaks_through_head()) return tell_head(NodeFrame::Kind::kOwnWords, text);
  (void)write_all(STDERR_FILENO, text);
}

bool print(std::string_view text) noexcept {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return true;
  say(Severity::kError, std::string("cannot write to standard output: ") + std::strerror(error));
  return false;
}

}  // namespace lrun::launcher
