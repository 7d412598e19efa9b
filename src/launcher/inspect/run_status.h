#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// One worker of a living run.
struct WorkerStatus {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  bool running = true;
  std::string ending;     ///< 'exited with code 0'; empty while it runs
  std::string last_line;  ///< what it printed last, safe for a terminal; empty: nothing, or lrun does not see it
  bool stopped = false;   ///< it runs, but a signal has stopped it (SIGSTOP)

  bool operator==(const WorkerStatus&) const = default;
};

/// What a living run says about itself through its control socket.
struct RunStatus {
  std::string run_id;
  pid_t pid = 0;                ///< of lrun as a shell knows it
  std::int64_t started_ms = 0;  ///< since the epoch
  std::int64_t running_ms = 0;  ///< since then, whatever the clock was set to; 0: an older launcher does not tell
  std::vector<std::string> argv;
  std::string strategy;
  int world_size = 0;
  int attempt = 0;  ///< 0 is the first
  int master_port = 0;
  std::string phase;  ///< 'running', 'stopping', 'killing', 'lingering', 'over'
  bool suspended = false;
  std::vector<WorkerStatus> workers;

  [[nodiscard]] bool stopping() const { return phase != "running"; }
  bool operator==(const RunStatus&) const = default;
};

/// One line of JSON, `schema` 1; text that is not UTF-8 is made so.
std::string to_json(const RunStatus& status);

/// Empty when `text` is not such an object or holds a value out of its range.
std::optional<RunStatus> run_status_from_json(std::string_view text);

}  // namespace lrun::launcher
