#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/timeline.h"

namespace lrun::launcher {

/// The uses of the time of a job, in milliseconds of the wall clock, whatever its number of ranks.
struct TimeUse {
  std::int64_t useful = 0;    ///< work that a checkpoint or the end of the training has kept
  std::int64_t starting = 0;  ///< from the start of the workers until all were ready
  std::int64_t lost = 0;      ///< work that no checkpoint has kept
  std::int64_t waiting = 0;   ///< no worker ran: for nodes, before restarts, between runs
  std::int64_t stopping = 0;  ///< from a failure or the wish to stop until the last worker had ended

  [[nodiscard]] std::int64_t whole() const { return useful + starting + lost + waiting + stopping; }
  TimeUse& operator+=(const TimeUse& other);
  bool operator==(const TimeUse&) const = default;
};

/// One start of the workers of a run.
struct AttemptUse {
  enum class End { kSucceeded, kFailed, kStopped, kRuns, kUnknown };  ///< kUnknown: lrun was killed

  std::string run_id;
  int attempt = 0;
  int round = 0;              ///< grows with every start, also where nodes came or went
  std::int64_t began_ms = 0;  ///< when its workers were started, since the epoch
  TimeUse use;                ///< with the waiting before it
  End end = End::kRuns;

  bool operator==(const AttemptUse&) const = default;
};

/// The time of a job: of a run, or of runs that were started again, as a requeued job's are.
struct Goodput {
  enum class Ready { kByStep, kByStore, kUnknown };  ///< the sign that a worker is ready

  int runs = 0;
  std::int64_t began_ms = 0;  ///< since the epoch
  std::int64_t until_ms = 0;  ///< its end, or now
  Ready ready = Ready::kUnknown;
  bool knows_checkpoints = false;    ///< else all work before a failure counts as lost
  TimeUse use;                       ///< its whole is until_ms - began_ms
  std::vector<AttemptUse> attempts;  ///< in order

  /// The useful share, 0 to 1.
  [[nodiscard]] double share() const;
};

/// The time of the runs of one job.
///
/// Workers are ready when each has begun its first step, as liblrun tells; where none ever does, when each has reached
/// the store; where none does that either, when they are started. What ranks never do in any start, nobody waits for.
/// The work of a start that failed or was stopped is useful up to its newest checkpoint. One in LRUN_MEMORY_DIR counts
/// only where a later start of the same run has kept its own work. Pure.
/// \param runs  oldest first, at least one
Goodput goodput_of(const std::vector<Timeline>& runs);

/// One use of the time of a job, for people.
struct NamedUse {
  std::string_view name;
  std::int64_t ms = 0;
  double share = 0;          ///< of the whole, 0 to 1
  std::string_view meaning;  ///< 'for nodes, before restarts, and between runs'
};
std::array<NamedUse, 5> named_uses(const Goodput& goodput);

/// '2 runs, 5 starts of the workers, 3h12m'.
std::string size_of_job(const Goodput& goodput);

/// A line for each use of the time, and one for each start of workers. \param name  of the job; may be empty
std::string goodput_text(const Goodput& goodput, const std::string& name);

/// The same as one JSON object, `schema` 1.
std::string goodput_json(const Goodput& goodput, const std::string& name);

/// A part of the page: the shares as a bar, with a legend.
std::string goodput_html(const Goodput& goodput);

}  // namespace lrun::launcher
