#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "logs/log_router.h"
#include "plan/launch_plan.h"
#include "process/memory_watch.h"
#include "process/worker_group.h"
#include "verdict/explain.h"

namespace lrun::launcher {

/// Makes the record of each worker's end: how it ended, which signals lrun had sent to it, and the evidence that the
/// worker and the machine left. Belongs to one attempt. One thread.
class EndRecorder {
 public:
  struct Facts {
    std::string host;
    int attempt = 0;
    std::filesystem::path error_folder = {};  ///< a worker's error file is <local rank>/error.json below it
    std::filesystem::path cgroup = {};        ///< of the workers alone; empty: there is none
    bool workers_write_files = false;         ///< some of their streams go to files in error_folder, past lrun
  };

  /// `node` and `logs` must outlive this.
  EndRecorder(const NodePlan& node, const LogRouter& logs, Facts facts);

  /// lrun sends this signal to the worker to end it: from now on the worker's end is not its own.
  void note_stop(const Worker& worker, int signal_number) { stop_signals_[worker.process.pid()] = signal_number; }
  /// All workers get this signal because lrun got it.
  void note_passed_on(int signal_number) { passed_on_.insert(signal_number); }

  /// The worker has ended. A memory kill that explains it is used up.
  FailureRecord ended(const Worker& worker, const ExitStatus& status);
  /// The worker does not end, and lrun waits for it no longer.
  FailureRecord lost(const Worker& worker);

 private:
  [[nodiscard]] FailureRecord begin_record(const Worker& worker) const;
  void name_logs(FailureRecord& record) const;
  EndFacts evidence_of(const FailureRecord& record);

  const NodePlan& node_;
  const LogRouter& logs_;
  Facts facts_;
  MemoryWatch memory_;
  std::map<pid_t, int> stop_signals_;  ///< the last one that lrun sent to a worker
  std::set<int> passed_on_;
};

}  // namespace lrun::launcher
