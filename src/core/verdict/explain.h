#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verdict/error_file.h"
#include "verdict/failure_record.h"

namespace lrun::inline core {

/// Facts about a worker's end beside its exit status.
struct EndFacts {
  std::vector<std::string> last_lines;  ///< its last output, safe for a terminal
  /// The last lines that came from stderr; empty when more lines followed on stdout than a buffer may have held back.
  std::vector<std::string> error_lines;
  std::optional<ErrorFile> error_file;
  std::string error_file_path;
  int memory_kills = 0;                   ///< processes killed by the kernel for lack of memory since the last end
  bool memory_kills_are_ours = false;     ///< counted in the run's cgroup; false: on the whole machine
  std::uint64_t memory_limit_bytes = 0;   ///< of that cgroup; 0: none
  bool shared_memory_full = false;        ///< /dev/shm
  std::uint64_t shared_memory_bytes = 0;  ///< its size
  std::uint64_t cpu_limit_seconds = 0;    ///< its limit of CPU time, if it used that up; 0: it did not
  std::string full_folder;                ///< the folder of its output files, if that is full; empty: it is not
  bool passed_on = false;                 ///< it died of a signal that was sent to lrun for all workers (USR1, USR2)

  bool operator==(const EndFacts&) const = default;
};

/// Sets `cause`, `error`, `location`, `detail`, `evidence`, `error_file` and `error_time` of a record whose ending is
/// set already. Pure.
///
/// A worker that lrun had sent a signal to is Cause::kStoppedByLrun whatever it printed; the error it printed is kept.
void explain(FailureRecord& record, const EndFacts& facts);

}  // namespace lrun::inline core
