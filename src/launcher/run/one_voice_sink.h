#pragma once

#include <functional>
#include <utility>

#include "report/message_sink.h"

namespace lrun::launcher {

/// For launchers that share a terminal and all print the same about their job: messages about the job pass only where
/// this launcher speaks for all. Messages about the node always pass.
class OneVoiceSink final : public MessageSink {
 public:
  /// \param next  must outlive this
  /// \param speaks  whether this launcher speaks for all, asked each time
  OneVoiceSink(MessageSink& next, std::function<bool()> speaks) : next_(next), speaks_(std::move(speaks)) {}

  void print(Severity severity, std::string_view text) noexcept override { next_.print(severity, text); }
  void print_lines(std::string_view lines) noexcept override { next_.print_lines(lines); }
  void print_of_job(std::string_view lines) noexcept override {
    if (speaks_()) next_.print_of_job(lines);
  }
  [[nodiscard]] bool colour() const noexcept override { return next_.colour(); }

 private:
  MessageSink& next_;
  std::function<bool()> speaks_;
};

}  // namespace lrun::launcher
