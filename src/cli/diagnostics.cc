#include "cli/diagnostics.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

namespace lrun {
namespace {

bool write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string render(const UserError& error, bool colour) {
  std::string lines = message_line(Severity::kError, error.what(), colour);
  if (!error.hint().empty()) lines += message_line(Severity::kHint, error.hint(), colour);
  return lines;
}

void say(Severity severity, std::string_view text) noexcept {
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

void write_to_stderr(std::string_view text) noexcept { (void)write_all(STDERR_FILENO, text); }

bool print(std::string_view text) noexcept {
  if (write_all(STDOUT_FILENO, text)) return true;
  say(Severity::kError, std::string("cannot write to standard output: ") + std::strerror(errno));
  return false;
}

}  // namespace lrun
