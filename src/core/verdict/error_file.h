#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::inline core {

struct FailureRecord;

/// The error file of a worker: what torch's @record writes to the path in TORCHELASTIC_ERROR_FILE. Its text comes from
/// a program and is not yet safe for a terminal.
struct ErrorFile {
  std::string message;     ///< 'ValueError: bad batch'
  std::string call_stack;  ///< the traceback, several lines; empty when the file has only a message
  std::int64_t time = 0;   ///< seconds since the epoch; 0: not in the file
  std::string text;        ///< the whole file, to pass on
  bool plain = false;      ///< the message is a text, not an object

  /// A longer file is not read: tracebacks are far shorter.
  static constexpr std::size_t kMostBytes = 256 * 1024;

  bool operator==(const ErrorFile&) const = default;
};

/// Reads both forms that torch accepts: the message as an object with extraInfo, or as a text with a timestamp beside
/// it. Empty when `text` is neither, or longer than kMostBytes. Pure; never throws, whatever the bytes are.
std::optional<ErrorFile> parse_error_file(std::string_view text);

/// The content of the error file that lrun's own parent, torchrun or another lrun, asked for: the worker's error file
/// with the exit code added, or, without one, the facts of `record`. One JSON object. `cause` is appended to the
/// message: what is to blame, where that is not the worker.
std::string error_file_for_parent(const FailureRecord& record, const std::optional<ErrorFile>& own, int exit_code,
                                  const std::string& cause = {});

/// The same for an error of lrun itself. `time` is in seconds since the epoch.
std::string error_file_of_launcher(std::string_view message, std::int64_t time);

}  // namespace lrun::inline core
