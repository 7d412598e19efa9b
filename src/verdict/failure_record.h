#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/exit_status.h"

namespace lrun {

/// How one worker's life ended, with what is known about it: the only form in which an ending travels, inside the
/// launcher, between launchers and to result.json.
struct FailureRecord {
  enum class Ending {
    kExited,      ///< by itself; `value` is the exit code, 0 included
    kSignaled,    ///< by a signal; `value` is its number
    kExecFailed,  ///< never ran; `value` is errno
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
  std::vector<std::string> evidence;  ///< its last lines, at most kMostEvidenceBytes in all

  static constexpr std::size_t kMostEvidenceBytes = 4096;

  [[nodiscard]] bool success() const { return ending == Ending::kExited && value == 0; }
  /// True when lrun had told it to end: it is nobody's cause.
  [[nodiscard]] bool stopped_by_lrun() const { return stop_signal != 0; }
  /// 'exited with code 3', 'died of SIGSEGV (invalid memory access)', 'could not be executed: No such file'.
  [[nodiscard]] std::string in_words() const;

  bool operator==(const FailureRecord&) const = default;
};

/// Keeps the last lines that fit FailureRecord::kMostEvidenceBytes.
std::vector<std::string> bounded_evidence(std::vector<std::string> lines);

/// One line of JSON; text that is not UTF-8 is made so.
std::string to_json(const FailureRecord& record);

/// Empty when `json` is longer than 64 KiB, not JSON, lacks a field, or holds a value out of its range: it may come
/// from another machine.
std::optional<FailureRecord> failure_record_from_json(std::string_view json);

}  // namespace lrun
