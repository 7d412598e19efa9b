#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verdict/error_file.h"
#include "verdict/failure_record.h"

namespace lrun::inline core {

/// What is known about an end besides how the process ended.
struct EndFacts {
  std::vector<std::string> last_lines;  ///< what it printed last, safe for a terminal
  /// Those of them that it printed on stderr; empty when more came on stdout later than a buffer may have held back.
  std::vector<std::string> error_lines;
  std::optional<ErrorFile> error_file;    ///< what it left in its error file
  std::string error_file_path;            ///< where
  int memory_kills = 0;                   ///< by the kernel for lack of memory, since the end before this one was seen
  bool memory_kills_are_ours = false;     ///< counted in the cgroup of the run; else anywhere on the machine
  std::uint64_t memory_limit_bytes = 0;   ///< of that cgroup; 0: none
  bool shared_memory_full = false;        ///< /dev/shm
  std::uint64_t shared_memory_bytes = 0;  ///< its size
  std::uint64_t cpu_limit_seconds = 0;    ///< of CPU time, that it had used up; 0: it had not
  std::string full_folder;  ///< that it wrote its output to by itself, and that takes no more; empty: none
  bool passed_on = false;   ///< the signal that it died of was sent to lrun, for all workers (USR1, USR2)

  bool operator==(const EndFacts&) const = default;
};

/// Fills `cause`, `error`, `location`, `detail`, `evidence`, `error_file` and `error_time` of a record whose ending is
/// known. Pure.
///
/// A worker that lrun had told to end is stopped_by_lrun whatever it printed meanwhile, but keeps its own words.
void explain(FailureRecord& record, const EndFacts& facts);

/// '64 MiB', '1.5 GiB': at most one decimal.
std::string bytes_in_words(std::uint64_t bytes);

}  // namespace lrun::inline core
