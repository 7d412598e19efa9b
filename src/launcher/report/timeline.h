#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

inline constexpr std::string_view kConnectedToStore = "connected to the store";
inline constexpr std::string_view kFirstStep = "first step";

/// Something that a worker reached, once: 'connected to the store', 'first output', 'first step'.
struct Milestone {
  std::int64_t ms = 0;  ///< since the epoch
  std::string what;
  int order = 0;  ///< of the event among all: the one that came first of several with the same time

  bool operator==(const Milestone&) const = default;
};

/// The memory and CPU of a rank's processes at one moment.
struct UsageSample {
  std::int64_t ms = 0;          ///< since the epoch
  std::int64_t memory_kib = 0;  ///< what processes share counts for each
  int cpu_percent = 0;          ///< of one core, since the sample before

  bool operator==(const UsageSample&) const = default;
};

/// One worker of one start. Nodes that come or go start an attempt again.
struct WorkerSpan {
  enum class Fate { kRunning, kSucceeded, kFailed, kStopped };

  int rank = 0;
  int local_rank = 0;
  int attempt = 0;
  int round = 0;  ///< grows with every start of workers, on all nodes of a job together
  pid_t pid = 0;
  std::string node;                         ///< the host that it ran on; empty: an older lrun did not tell
  std::string logs;                         ///< the folder of its attempt's log files; empty: it has none
  std::vector<std::string> log_files = {};  ///< those that can be read from here; not part of the events
  std::int64_t spawned_ms = 0;
  int spawned_order = 0;              ///< as Milestone::order
  std::int64_t clock_ahead_ms = 0;    ///< of the times here, when it was spawned: somebody has set the clock
  std::vector<Milestone> milestones;  ///< in any order
  std::int64_t ended_ms = 0;          ///< 0: no end is known
  int ended_order = 0;                ///< as Milestone::order
  std::string ending;                 ///< 'exited with code 3: ValueError: boom'; empty without an end
  Fate fate = Fate::kRunning;
  std::vector<UsageSample> usage = {};  ///< in order, as far as one process has written them
  std::int64_t peak_memory_kib = -1;    ///< of all samples, or of its largest process; -1: not known

  bool operator==(const WorkerSpan&) const = default;
};

/// When the newest checkpoints were written that a round of workers has left; 0: none is known.
struct CheckpointTimes {
  int round = 0;
  std::int64_t kept_ms = 0;
  std::int64_t in_memory_ms = 0;  ///< in LRUN_MEMORY_DIR, which is gone after the run
  int order = 0;                  ///< as Milestone::order

  bool operator==(const CheckpointTimes&) const = default;
};

/// The events of a run with their times, from its events.jsonl. Times are by the clock as it was when the run began:
/// they do not change when the clock was set meanwhile.
struct Timeline {
  std::string run_id;
  std::vector<std::string> argv;          ///< its first 32 KiB
  std::vector<std::string> command_line;  ///< of lrun itself; empty: not known
  std::size_t command_line_bytes = 0;     ///< of one that was too long to be kept, else 0
  std::string folder;                     ///< in which that was typed
  std::string strategy;
  std::string plan;                    ///< as --dry-run shows it; empty: an older lrun did not tell
  int world_size = 0;                  ///< 0: a head does not know it
  std::int64_t launched_ms = 0;        ///< when its first launcher began; 0: not asked for. Not part of the events
  std::int64_t started_ms = 0;         ///< when its first workers were started
  std::int64_t started_steady_ms = 0;  ///< by the steady clock; 0: an older lrun did not tell
  std::int64_t ended_ms = 0;           ///< 0: it has no end
  std::int64_t now_ms = 0;             ///< of a run that goes on: when it was looked at; else 0
  std::string reason;                  ///< 'succeeded', 'worker failed', …; empty without an end
  int exit_code = 0;
  int culprit = -1;                               ///< the rank to blame for the end; -1: none
  std::vector<WorkerSpan> workers;                ///< by round, then as they were started
  std::vector<Milestone> marks;                   ///< of the whole run: 'stopping 3 workers', 'restart 1'
  std::vector<std::int64_t> stops_ms = {};        ///< when lrun began to stop workers, in any order
  std::vector<std::int64_t> goes_on_ms = {};      ///< when lrun chose to start workers again, in any order
  std::vector<CheckpointTimes> checkpoints = {};  ///< as the launchers found them, in any order

  [[nodiscard]] bool succeeded() const { return reason == "succeeded"; }
  /// The time that a picture must reach: the end, or the last thing known.
  [[nodiscard]] std::int64_t last_ms() const;
  /// Those of the last round: of a time before the nodes of the job changed there may be others with their ranks.
  [[nodiscard]] std::vector<WorkerSpan> last_workers() const;
  /// The one with the highest peak memory; nullptr: no peak is known.
  [[nodiscard]] const WorkerSpan* largest_worker() const;
  /// `marks`, and the newest checkpoint of each round, unless it is older than the run.
  [[nodiscard]] std::vector<Milestone> marks_with_checkpoints() const;
  /// The kinds of milestones, in the order in which they were first reached.
  [[nodiscard]] std::vector<std::string> milestone_names() const;
  bool operator==(const Timeline&) const = default;
};

/// Reads events.jsonl. Lines that are not understood, or not whole, are passed over: events are added over time. Empty
/// when nothing says how the run began. Pure.
std::optional<Timeline> timeline_from_events(std::string_view events);

/// The timelines of the launchers of a job as one, by their clocks. It has once what several of them tell: what ran is
/// that of a launcher of the first round, the command line of lrun that of a head, which has no workers, where there is
/// one, and the end that of deciding_part(). Pure.
/// \param parts  at least one
Timeline merged(std::vector<Timeline> parts);

/// The index of the launcher whose end is the job's: of those of the last round the one that ended last. Others may
/// have left the job before. Pure. \param parts  at least one
std::size_t deciding_part(const std::vector<Timeline>& parts);

/// The text of `lrun report`: the command, when it began and how long it took, then all events in order. An event of
/// several ranks is one line with the time of the first and the last.
std::string timeline_text(const Timeline& timeline);

/// The reason of an end by its name in JSON, as words: 'timed_out' as 'timed out', 'guard_died' as 'lrun was killed'.
std::string words_of_reason(const std::string& name);

/// 'world size 4, ddp'; 'on other hosts' where only the head's events are here.
std::string size_text(const Timeline& timeline);

/// '2026-11-22 00:24:27 UTC'.
std::string utc_time(std::int64_t ms);

}  // namespace lrun::launcher
