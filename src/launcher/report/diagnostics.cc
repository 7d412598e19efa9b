#include "report/diagnostics.h"

#include <poll.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"

namespace lrun::launcher {

std::string render(const UserError& error, bool colour) {
  std::string lines = message_line(Severity::kError, error.what(), colour);
  if (!error.hint().empty()) lines += message_line(Severity::kHint, error.hint(), colour);
  return lines;
}

bool print_to_stdout(std::string_view text, MessageSink& sink) noexcept {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return true;
  sink.error(std::string("cannot write to standard output: ") + std::strerror(error));
  return false;
}

bool wait_while_stdout_is_read(Duration moment) noexcept {
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&out, 1, static_cast<int>(moment.count())) <= 0 || (out.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}

}  // namespace lrun::launcher
