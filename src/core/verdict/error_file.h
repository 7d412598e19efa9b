#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::inline core {

struct FailureRecord;

/// What a worker left in the file that TORCHELASTIC_ERROR_FILE names, as torch's @record writes it. Text that came from
/// a program: not yet safe for a terminal.
struct ErrorFile {
  std::string message;     ///< 'ValueError: bad batch'
  std::string call_stack;  ///< the traceback, several lines; empty when only a message was left
  std::int64_t time = 0;   ///< seconds since the epoch; 0: the file does not tell
  std::string text;        ///< the whole file, to be passed on
  bool plain = false;      ///< the message stands as text, not as an object

  /// A longer file is not read: a traceback is far below it.
  static constexpr std::size_t kMostBytes = 256 * 1024;

  bool operator==(const ErrorFile&) const = default;
};

/// Understands both forms that torch accepts: the message as an object with extraInfo, and as text with a timestamp
/// beside it. Empty when `text` is neither, or longer than kMostBytes. Pure; never throws on any bytes.
std::optional<ErrorFile> parse_error_file(std::string_view text);

/// What lrun leaves in the error file of its own parent, which may be torchrun or another lrun: the worker's own file
/// with the exit code added, or, without one, what is known about `record`. One JSON object. `cause` is what is to
/// blame where that is not the worker; it comes behind the message.
std::string error_file_for_parent(const FailureRecord& record, const std::optional<ErrorFile>& own, int exit_code,
                                  const std::string& cause = {});

/// The same for an error of lrun itself. `time` is in seconds since the epoch.
std::string error_file_of_launcher(std::string_view message, std::int64_t time);

}  // namespace lrun::inline core
