#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// A run that is kept, in a line.
struct RunSummary {
  std::string id;
  std::string name;             ///< of its job (--rdzv-id); may be empty
  std::int64_t started_ms = 0;  ///< since the epoch; 0: not known
  std::int64_t took_ms = 0;     ///< up to its end, or up to now
  int world_size = 0;           ///< 0: not known
  bool alive = false;
  std::string result;  ///< 'running', 'ok', 'rank 3: SIGKILL'
  std::vector<std::string> argv;
  std::string job = {};  ///< of Slurm: '31.0'; may be empty

  bool operator==(const RunSummary&) const = default;
};

/// The result of a run that has ended, from its result.json: 'ok', 'rank 3: exit code 1', 'rank 3: SIGKILL',
/// 'interrupted: SIGINT', 'timed out'. 'lrun was killed' where it left none.
std::string result_words(const std::optional<std::string>& result_json);

/// A line for each run, below a line that names the columns. Where none has a job, there is no column for it.
/// \param columns  of a terminal, which no line exceeds: commands are shortened, and where that is not enough, there is
/// no column for the begin, which a run's id holds. 0: stdout is something else, and nothing is shortened
std::string runs_text(const std::vector<RunSummary>& runs, int columns = 0);

/// `schema` 1: 'runs', as they come.
std::string runs_json(const std::vector<RunSummary>& runs);

}  // namespace lrun::launcher
