#include "report/message_sink.h"

#include <unistd.h>

#include <exception>
#include <string>

#include "base/fd.h"

namespace lrun::launcher {

void MessageSink::print_error(const UserError& error) noexcept {
  print(Severity::kError, error.what());
  if (!error.hint().empty()) print(Severity::kHint, error.hint());
}

void MessageSink::message_of_job(Severity severity, std::string_view text) noexcept {
  try {
    print_of_job(message_line(severity, text, colour()));
  } catch (const std::exception&) {  // out of memory: the end of the run says enough
  }
}

void StderrSink::print(Severity severity, std::string_view text) noexcept {
  try {
    print_lines(message_line(severity, text, colour()));
  } catch (const std::exception&) {
    print_lines("lrun: error: out of memory\n");
  }
}

void StderrSink::print_error(const UserError& error) noexcept {
  try {
    std::string lines = message_line(Severity::kError, error.what(), colour());
    if (!error.hint().empty()) lines += message_line(Severity::kHint, error.hint(), colour());
    print_lines(lines);
  } catch (const std::exception&) {
    print_lines("lrun: error: out of memory\n");
  }
}

void StderrSink::print_lines(std::string_view lines) noexcept { (void)write_all(STDERR_FILENO, lines); }

bool StderrSink::colour() const noexcept { return takes_colour(STDERR_FILENO); }

}  // namespace lrun::launcher
