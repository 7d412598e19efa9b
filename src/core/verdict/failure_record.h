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

/// How one worker ended and why. The one form of an ending inside the launcher, between launchers and in result.json.
struct FailureRecord {
  enum class Ending {
    kExited,      ///< `value` is the exit code, 0 included
    kSignaled,    ///< `value` is the number of the signal
    kExecFailed,  ///< it never ran; `value` is errno
    kLost,        ///< how it ended is not known; `value` is 0
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
  std::int64_t peak_memory_kib = -1;  ///< of its largest process; -1: not known
  Ending ending = Ending::kExited;
  int value = 0;
  bool core_dumped = false;
  int stop_signal = 0;                ///< the last signal that lrun sent to it before it ended; 0: none
  std::vector<std::string> evidence;  ///< its decisive last lines, at most kMostEvidenceBytes in all

  Cause cause = Cause::kSucceeded;  ///< set by explain()
  std::string error;                ///< the error it reported: 'ValueError: bad batch'; one line, may be empty
  std::string location;             ///< 'train.py:12 in step'; empty when unknown
  std::string detail;               ///< another fact: 'memory limit 64 MiB'; may be empty
  std::string error_file;           ///< path of its error file; empty when it wrote none
  std::string logs;                 ///< folder of its log files, on its node, if it failed by itself and wrote any
  std::int64_t error_time = 0;      ///< of that file, in seconds since the epoch; 0: not in the file

  static constexpr std::size_t kMostEvidenceBytes = 4096;
  static constexpr std::size_t kMostErrorBytes = 1024;  ///< of `error`, `location` and `detail` each

  /// Sets how the process ended: `ending`, `value`, `core_dumped`.
  void set_status(const ExitStatus& status);

  [[nodiscard]] bool success() const { return ending == Ending::kExited && value == 0; }
  /// True when lrun had sent it a signal: its end is not the cause of anything.
  [[nodiscard]] bool stopped_by_lrun() const { return stop_signal != 0; }
  /// True when the signal ended it, or ended the program that it ran: a shell then exits with 128 + the number.
  [[nodiscard]] bool ended_by(int signal_number) const {
    return ending == Ending::kSignaled ? value == signal_number
                                       : ending == Ending::kExited && value == exit_code_of_signal(signal_number);
  }
  /// 'exited with code 3', 'died of SIGSEGV (invalid memory access)', 'could not be executed: No such file',
  /// 'was killed by the kernel's out-of-memory killer (memory limit 64 MiB)'.
  [[nodiscard]] std::string describe() const;
  /// The first part of describe(): how the process ended, 'died of SIGBUS (bus error)'.
  [[nodiscard]] std::string describe_status() const;
  /// The second part: the reason, '/dev/shm is full (1 MiB)'; may be empty.
  [[nodiscard]] std::string describe_reason() const;

  bool operator==(const FailureRecord&) const = default;
};

/// Keeps the last lines that fit FailureRecord::kMostEvidenceBytes.
std::vector<std::string> bounded_evidence(std::vector<std::string> lines);

/// One line of JSON. Bytes that are not UTF-8 are replaced.
std::string to_json(const FailureRecord& record);

/// Empty when `json` is longer than 64 KiB, is not JSON, lacks a field, or has a value out of range: it may come from
/// another machine.
std::optional<FailureRecord> failure_record_from_json(std::string_view json);

}  // namespace lrun::inline core
