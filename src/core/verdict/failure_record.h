#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/exit_codes.h"
#include "process/exit_status.h"
#include "verdict/cause.h"

namespace lrun::inline core {

/// How one worker's life ended, with what is known about it: the only form in which an ending travels, inside the
/// launcher, between launchers and to result.json.
struct FailureRecord {
  enum class Ending {
    kExited,      ///< by itself; `value` is the exit code, 0 included
    kSignaled,    ///< by a signal; `value` is its number
    kExecFailed,  ///< never ran; `value` is errno
    kLost,        ///< nobody learned how: `value` is 0
  };

  std::string node;  ///< host name
  int node_rank = 0;
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  int attempt = 0;
  std::string device;          ///< 'cuda:2', 'cpu'; empty when unknown
  std::int64_t steady_ns = 0;  ///< this node's steady clock, for order on the node
  std::int64_t wall_ns = 0;    ///< since the epoch, for people and for other nodes
  std::int64_t lifetime_ms = 0;
  Ending ending = Ending::kExited;
  int value = 0;
  bool core_dumped = false;
  int stop_signal = 0;  ///< the last signal lrun had sent to it before it ended; 0: lrun had not touched it
  std::vector<std::string> evidence;  ///< its decisive last lines, at most kMostEvidenceBytes in all

  Cause cause = Cause::kSucceeded;  ///< judged by explain()
  std::string error;                ///< what it said itself: 'ValueError: bad batch'; one line, may be empty
  std::string location;             ///< 'train.py:12 in step'; empty when unknown
  std::string detail;               ///< what is known besides: 'memory limit 64 MiB'; empty when nothing
  std::string error_file;           ///< where it left its exception as JSON; empty when it did not
  std::int64_t error_time = 0;      ///< seconds since the epoch, as that file tells; 0: it does not

  static constexpr std::size_t kMostEvidenceBytes = 4096;
  static constexpr std::size_t kMostErrorBytes = 1024;  ///< of `error`, `location` and `detail` each

  /// Sets how the process ended: `ending`, `value`, `core_dumped`.
  void set_status(const ExitStatus& status);

  [[nodiscard]] bool success() const { return ending == Ending::kExited && value == 0; }
  /// True when lrun had told it to end: it is nobody's cause.
  [[nodiscard]] bool stopped_by_lrun() const { return stop_signal != 0; }
  /// By this signal itself, or because its only process was: a shell then exits with 128 + the number.
  [[nodiscard]] bool ended_by(int signal_number) const {
    return ending == Ending::kSignaled ? value == signal_number
                                       : ending == Ending::kExited && value == exit_code_of_signal(signal_number);
  }
  /// 'exited with code 3', 'died of SIGSEGV (invalid memory access)', 'could not be executed: No such file',
  /// 'was killed by the kernel's out-of-memory killer (memory limit 64 MiB)'.
  [[nodiscard]] std::string in_words() const;
  /// The first part of in_words(): how the process ended, 'died of SIGBUS (bus error)'.
  [[nodiscard]] std::string status_in_words() const;
  /// The second part: what is known beyond it, '/dev/shm is full (1 MiB)'; may be empty.
  [[nodiscard]] std::string reason_in_words() const;

  bool operator==(const FailureRecord&) const = default;
};

/// Keeps the last lines that fit FailureRecord::kMostEvidenceBytes.
std::vector<std::string> bounded_evidence(std::vector<std::string> lines);

/// One line of JSON; text that is not UTF-8 is made so.
std::string to_json(const FailureRecord& record);

/// Empty when `json` is longer than 64 KiB, not JSON, lacks a field, or holds a value out of its range: it may come
/// from another machine.
std::optional<FailureRecord> failure_record_from_json(std::string_view json);

}  // namespace lrun::inline core
