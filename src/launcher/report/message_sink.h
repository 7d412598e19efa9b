#pragma once

#include <string_view>

#include "base/message.h"
#include "base/user_error.h"

namespace lrun::launcher {

/// Takes everything that lrun prints for people. main() chooses the sink of a process, and every part that has
/// something to say gets it from its caller.
///
/// All launchers of a job print what happens to the job, and people want to read it once. A message about this node and
/// lines about the job are therefore different calls. Empty lines print nothing. No call throws; text that cannot be
/// written is lost.
class MessageSink {
 public:
  MessageSink() = default;
  MessageSink(const MessageSink&) = delete;
  MessageSink& operator=(const MessageSink&) = delete;
  virtual ~MessageSink() = default;

  /// One message about this node: 'lrun: warning: text'. `text` is as message_line() wants it.
  virtual void print(Severity severity, std::string_view text) noexcept = 0;
  /// Lines about this node, rendered already.
  virtual void print_lines(std::string_view lines) noexcept = 0;
  /// Lines about the job, rendered already.
  virtual void print_of_job(std::string_view lines) noexcept = 0;
  /// Rendered lines may have colour.
  [[nodiscard]] virtual bool colour() const noexcept = 0;

  void error(std::string_view text) noexcept { print(Severity::kError, text); }
  void warn(std::string_view text) noexcept { print(Severity::kWarning, text); }
  void note(std::string_view text) noexcept { print(Severity::kNote, text); }
  void hint(std::string_view text) noexcept { print(Severity::kHint, text); }
  /// The error and its hint.
  virtual void print_error(const UserError& error) noexcept;
  /// One message about the job.
  void message_of_job(Severity severity, std::string_view text) noexcept;
};

/// Writes to the process's stderr, each message in one write, so that lines of several processes do not mix. Blocks
/// while stderr takes nothing.
class StderrSink final : public MessageSink {
 public:
  void print(Severity severity, std::string_view text) noexcept override;
  void print_lines(std::string_view lines) noexcept override;
  void print_of_job(std::string_view lines) noexcept override { print_lines(lines); }
  [[nodiscard]] bool colour() const noexcept override;
  /// In one write: mpirun ends all tasks where one has failed, and drops what it reads later.
  void print_error(const UserError& error) noexcept override;
};

}  // namespace lrun::launcher
