#pragma once

#include "logs/log_router.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// Prints among the workers' output on stderr, never inside a worker's line, and never blocks: the console may be slow
/// or stopped.
class ConsoleSink final : public MessageSink {
 public:
  /// \param colour  stderr shows colours. `logs` must outlive this.
  ConsoleSink(LogRouter& logs, bool colour) : logs_(logs), colour_(colour) {}

  void print(Severity severity, std::string_view text) noexcept override { message_of_job(severity, text); }
  void print_lines(std::string_view lines) noexcept override { print_of_job(lines); }
  void print_of_job(std::string_view lines) noexcept override { logs_.print(lines); }
  [[nodiscard]] bool colour() const noexcept override { return colour_; }

 private:
  LogRouter& logs_;
  bool colour_;
};

}  // namespace lrun::launcher
