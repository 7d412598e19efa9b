#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verdict/failure_record.h"
#include "verdict/rank_places.h"
#include "verdict/run_end.h"

namespace lrun::inline core {

/// Numbers of workers by how they ended.
struct Fates {
  int stopped_by_signal = 0;  ///< lrun stopped them, and they ended within the grace period
  int killed = 0;             ///< lrun killed them
  int lost = 0;               ///< they did not end although they were killed
  int failed = 0;             ///< by themselves
  int succeeded = 0;

  /// The number that `record` belongs to.
  [[nodiscard]] int& of(const FailureRecord& record);
  [[nodiscard]] std::int64_t total() const {
    return std::int64_t{stopped_by_signal} + killed + lost + failed + succeeded;
  }
  bool operator==(const Fates&) const = default;
};

/// Lines that people read, where all launchers of a job print on one screen.
struct ScreenLines {
  int since_stop = 0;            ///< printed since workers were told to stop
  std::vector<int> ranks_shown;  ///< failures whose last words stood there a few lines before the report

  bool operator==(const ScreenLines&) const = default;
};

/// The result of a run, from the endings of all its workers.
struct Verdict {
  RunEnd end;
  std::optional<FailureRecord> culprit;  ///< the worker to blame; empty when none failed by itself
  /// The worker that failed first, where another one is to blame: a victim (is_victim()), or one whose error file is
  /// newer than the culprit's.
  std::optional<FailureRecord> overruled;
  /// The first worker that exited with 0 by itself, where others ran on until the run was stopped.
  std::optional<FailureRecord> ended_first;
  std::vector<RankPlace> places;       ///< where workers were before they were stopped; empty: not looked at
  Fates others;                        ///< of all workers but the culprit
  ScreenLines screen;                  ///< of all nodes, where a job is judged
  std::int64_t checkpoint_ns = 0;      ///< the wall clock when the newest was written; 0: none, or nobody looked
  std::vector<int> stopped_by_signal;  ///< ranks; this and the next three only where one node is judged
  std::vector<int> killed;
  std::vector<int> lost;
  std::vector<int> failed_later;  ///< after the culprit, before lrun's signal reached them
  int restarts = 0;               ///< of the run, before the attempt that is judged
  int exit_code = 0;              ///< of lrun
  int die_of_signal = 0;          ///< not 0: lrun ends by this signal instead of exiting

  /// The failure that ended the run: the culprit's, or that of the worker that waited for a culprit that ended with 0.
  /// nullptr: no worker failed by itself.
  [[nodiscard]] const FailureRecord* failure() const;
  bool operator==(const Verdict&) const = default;
};

/// Judges a run. `records` holds one ending per worker, in the order in which the launcher saw them. Pure.
///
/// The culprit is the first worker that failed before lrun sent it a signal. A victim (a watchdog's abort, a lost peer)
/// is the culprit only when no worker has an error of its own. The time of a failure is that in the worker's error file
/// (whole seconds, as torchrun compares them), without one the time of its end; of equal times the lowest rank counts.
/// A rank that lrun stopped is never blamed, unless its error file is older than every other failure.
///
/// The first worker that ended with 0 by itself is to blame, as Cause::kEndedEarly, in two cases: when only victims
/// failed, in a collective operation; and when a limit or a user stopped the run and all of `places` wait for others.
/// The detail names the rank that waited for it, and where. A victim that gave up may have waited for a rank that still
/// runs: then no rank of `places` may be elsewhere. The exit code stays that of the failure, the limit or the signal.
/// \param others_lived  other workers than those of `records` ran when the first one failed
Verdict judge(const RunEnd& end, const std::vector<FailureRecord>& records, const std::vector<RankPlace>& places = {},
              bool others_lived = false);

/// The records that decide judge()'s culprit and overruled worker, the first failure before the others; at most seven.
/// The decisive records of several sets together decide for all records of these sets. Pure.
std::vector<FailureRecord> decisive_records(const std::vector<FailureRecord>& records);

}  // namespace lrun::inline core
