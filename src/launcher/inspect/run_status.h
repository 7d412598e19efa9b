#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// The share of one GPU that a rank uses.
struct GpuUse {
  int gpu = 0;          ///< its number, as nvidia-smi counts
  int memory_mib = -1;  ///< -1: unknown
  int percent = -1;     ///< of the GPU's time, lately; -1: unknown

  bool operator==(const GpuUse&) const = default;
};

/// The training steps that a rank reported to its launcher; programs of liblrun do.
struct StepsDone {
  std::int64_t count = 0;        ///< 0: it reports none
  std::int64_t took_ms = 0;      ///< from the first report to the last one
  std::int64_t last_ms_ago = 0;  ///< the last report

  bool operator==(const StepsDone&) const = default;
};

/// The use that a rank's process and those below it make of the machine. -1: unknown.
struct RankUse {
  std::int64_t lived_ms = -1;        ///< since the rank's process started
  std::int64_t cpu_ms = -1;          ///< of processor time since then; of processes that have ended, too
  int cpu_percent = -1;              ///< of one core: since the last look, or at the first one since it started
  std::int64_t resident_bytes = -1;  ///< of memory; what processes share counts for each
  std::int64_t steps_in_ks = -1;     ///< training steps in 1000 seconds, at the present speed

  bool operator==(const RankUse&) const = default;
};

/// One worker of a living run.
struct WorkerStatus {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  bool running = true;
  std::string ending;     ///< 'exited with code 0'; empty while it runs
  std::string last_line;  ///< the last that it printed, safe for a terminal; empty: none, or lrun does not read it
  bool stopped = false;   ///< it runs, but a signal has stopped it (SIGSTOP)
  std::vector<GpuUse> gpus = {};  ///< that its processes compute on; its launcher does not say, see add_gpu_use()
  std::int64_t quiet_ms = -1;     ///< since it printed anything; -1: it never did, or lrun does not read it
  StepsDone steps = {};
  RankUse use = {};          ///< its launcher mostly does not say, see RankMeter
  std::string unusual = {};  ///< 'quiet', 'low CPU': how it differs from the other ranks, see mark_unusual()

  bool operator==(const WorkerStatus&) const = default;
};

/// HostStatus::state of a host whose launcher runs.
inline constexpr const char* kHostRuns = "running";

/// One host of a run, as its head knows it.
struct HostStatus {
  std::string name;
  std::string state;  ///< 'starting', 'running', 'exited with code 0', 'lost'

  bool operator==(const HostStatus&) const = default;
};

/// A living run as its control socket describes it.
struct RunStatus {
  std::string run_id;
  std::string host = {};               ///< of the launcher
  std::string job = {};                ///< of Slurm: '31.0'; its launcher does not say, see ask_launchers()
  int nodes = 1;                       ///< launchers of the job
  pid_t pid = 0;                       ///< of lrun as a shell knows it
  std::vector<pid_t> other_pids = {};  ///< of launchers whose workers were added to these, see with_hosts_joined()
  std::int64_t started_ms = 0;         ///< since the epoch
  std::int64_t running_ms = 0;         ///< since then, also where the clock was set; 0: an older launcher lacks it
  std::vector<std::string> argv;
  std::string strategy;
  int world_size = 0;
  int attempt = 0;  ///< 0 is the first
  int master_port = 0;
  /// 'waiting', 'running', 'stopping', 'killing', 'lingering', 'over', 'backing_off', 'between_rounds'
  std::string phase;
  std::string meets_at = {};         ///< while it waits for its job: 'node0 port 29500'; empty of a head
  std::string waits_for = {};        ///< while it waits: which launchers or hosts are there, and which are missing
  std::int64_t gives_up_in_ms = -1;  ///< while it waits; -1: it does not give up, or does not know when
  bool suspended = false;
  std::vector<WorkerStatus> workers;
  int ranks_left_out = 0;              ///< of another host, whose answer was too long
  std::vector<HostStatus> hosts = {};  ///< of a head, which has no workers and knows no world size

  [[nodiscard]] bool waiting() const { return phase == "waiting"; }
  [[nodiscard]] bool stopping() const { return phase != "running" && !waiting(); }
  bool operator==(const RunStatus&) const = default;
};

/// One line of JSON, `schema` 1. Bytes that are not UTF-8 become U+FFFD.
std::string to_json(const RunStatus& status);

/// The same of at most `most` bytes, for other launchers: without the command, and lines are cut, or left out, and then
/// ranks.
std::string to_json_within(RunStatus status, std::size_t most);

/// Empty when `text` is not such an object or holds a value out of its range.
std::optional<RunStatus> run_status_from_json(std::string_view text);

}  // namespace lrun::launcher
