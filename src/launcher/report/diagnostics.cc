#include "report/diagnostics.h"

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

}  // namespace lrun::launcher
