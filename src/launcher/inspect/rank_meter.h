#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/process_stat.h"
#include "inspect/rank_process.h"
#include "inspect/run_status.h"

namespace lrun::launcher {

/// The processes that /proc shows at one moment; none where there is no /proc.
struct ProcessTable {
  std::map<pid_t, ProcessStat> processes;
  std::int64_t uptime_ms = 0;  ///< since the machine started
  std::int64_t ticks_per_second = 100;
  std::int64_t page_bytes = 4096;
};
ProcessTable read_process_table();

/// Measures what ranks use, from one look to the next. One thread.
class RankMeter {
 public:
  /// Fills RankUse of the running workers of a launcher. A worker that is not below its launcher there, as in another
  /// container, is left unknown.
  void measure(RunStatus& status, const ProcessTable& now);

  /// The same of these ranks, now; /proc is not read for none.
  std::vector<WorkerStatus> measure(pid_t launcher, const std::vector<RankProcess>& ranks);

 private:
  struct Seen {
    std::uint64_t started_ticks = 0;  ///< else it is another process with that pid
    std::int64_t uptime_ms = 0;
    std::uint64_t cpu_ticks = 0;
    StepsDone steps;
    std::int64_t steps_in_ks = -1;
  };
  std::map<pid_t, Seen> seen_;
};

}  // namespace lrun::launcher
