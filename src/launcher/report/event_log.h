#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/fd.h"
#include "base/folder.h"
#include "inspect/run_status.h"
#include "plan/launch_plan.h"
#include "process/worker_group.h"
#include "rendezvous/membership.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// events.jsonl in the folder of a run: what happened and when, a JSON object a line, `schema` 1: `time` is in seconds
/// since the epoch, and `steady` by the steady clock, which nobody sets. A line is one write, so a reader of a living
/// run sees whole lines; one that a full disk cut stays cut, and the next begins on a line of its own. Without a file
/// every call does nothing.
class EventLog {
 public:
  EventLog() = default;
  /// \throws std::system_error  the file cannot be made.
  explicit EventLog(const Folder& run_folder);

  /// Events from now on are written after the next run_started() or attempt_started(), whose time is `since`: workers
  /// may end before all have been started.
  void hold_back(SteadyTime since = steady_now());

  /// \param membership  of the first attempt here, which is a later one of a job that this node has joined
  /// \param logs  the folder of its log files; empty: there are none
  /// \param command_line  of lrun, for `lrun again`; empty: not known
  /// \param plan_text  as --dry-run shows it
  void run_started(const LaunchPlan& plan, const Membership& membership, const std::vector<Worker>& workers,
                   const std::filesystem::path& logs, const std::vector<std::string>& command_line,
                   const std::string& plan_text);
  /// The next attempt's workers run; the first attempt's are part of run_started(). A change of nodes starts an attempt
  /// again, with log files of its own. \param logs  as of run_started()
  void attempt_started(const Membership& membership, const std::vector<Worker>& workers,
                       const std::filesystem::path& logs);
  /// An attempt failed, and the next one begins after `delay`.
  void restarting(int attempt, Duration delay);
  /// A worker has reached the store for the first time in its attempt.
  void worker_connected(int rank, int attempt);
  /// A worker reported its first training step at `steady_ns` of the steady clock. Called when the attempt is over,
  /// since lrun does not wake up for steps.
  void first_step(int rank, int attempt, std::int64_t steady_ns);
  /// The CPU and memory that ranks used lately, one line for all: for each in `rank` its number in `memory_kib` and in
  /// `cpu_percent`. Those that were not measured are left out.
  void used(int attempt, const std::vector<WorkerStatus>& workers);
  void worker_ended(const FailureRecord& record);
  /// An attempt is over, and its newest checkpoints were written then, in nanoseconds of the wall clock; 0: none is
  /// known. `in_memory_ns`: of one that is gone with the run.
  void checkpoints_found(int attempt, std::int64_t kept_ns, std::int64_t in_memory_ns);
  void settling(int rank, Duration moment);
  /// `cause` is the worker to blame so far, or nullptr.
  void stopping(const RunEnd& end, const FailureRecord* cause, int others);
  /// A rule of --watch holds for a rank.
  void watched(int rank, const std::string& text);
  /// 'killing', 'suspended', 'resumed'.
  void noted(std::string_view event);
  void run_ended(const Verdict& verdict);

 private:
  void write(std::string_view event, std::string_view fields, Duration ago = Duration(0));
  void write_first(std::string_view event, std::string_view fields);
  void append(std::string_view line);

  Fd file_;
  std::optional<std::string> held_back_;
  SteadyTime held_since_;
  bool cut_ = false;  ///< the file does not end with a whole line
};

}  // namespace lrun::launcher
