#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verdict/failure_record.h"
#include "verdict/rank_places.h"
#include "verdict/run_end.h"

namespace lrun::inline core {

/// How many workers ended in which way.
struct Fates {
  int stopped_by_signal = 0;  ///< lrun stopped them, and they ended in the grace, by the first signal or after it
  int killed = 0;             ///< lrun had to kill them
  int lost = 0;               ///< they did not end though they were killed
  int failed = 0;             ///< by themselves
  int succeeded = 0;

  /// The number that `record` counts in.
  [[nodiscard]] int& of(const FailureRecord& record);
  [[nodiscard]] std::int64_t total() const {
    return std::int64_t{stopped_by_signal} + killed + lost + failed + succeeded;
  }
  bool operator==(const Fates&) const = default;
};

/// What a run came to, from the endings of all its workers.
struct Verdict {
  RunEnd end;
  std::optional<FailureRecord> culprit;  ///< the worker to blame; empty when none failed by itself
  /// The worker that failed first of all, when it was passed over: a victim (is_victim()), or with an error file that
  /// is younger than the culprit's.
  std::optional<FailureRecord> overruled;
  /// The first that ended with 0 by itself, where others ran on until the run was stopped.
  std::optional<FailureRecord> ended_first;
  std::vector<RankPlace> places;       ///< where workers were before they were stopped, if anybody looked
  Fates others;                        ///< of all workers but the culprit
  std::vector<int> stopped_by_signal;  ///< their ranks, where one node's workers are judged; so are the next three
  std::vector<int> killed;
  std::vector<int> lost;
  std::vector<int> failed_later;  ///< after the culprit, before lrun's signal reached them
  int restarts = 0;               ///< of the whole run, before the attempt that this verdict is about
  int exit_code = 0;              ///< what lrun exits with
  int die_of_signal = 0;          ///< not 0: lrun is to end by this signal instead

  /// The failure that ended the run: the culprit's, or that of whoever waited for a culprit that ended with 0. nullptr:
  /// nobody failed by itself.
  [[nodiscard]] const FailureRecord* failure() const;
  bool operator==(const Verdict&) const = default;
};

/// Judges a run. `records` holds one ending per worker, in the order in which they were seen. Pure.
///
/// The culprit is the first that failed without having been told to end, but a victim (a watchdog's abort, a lost
/// peer) only when nobody has an error of its own. The time of a failure is that of the worker's error file where it
/// left one (whole seconds, as torchrun compares them), else that of its death; at the same instant the lowest rank.
/// A rank that lrun stopped is never blamed, unless its error file is older than every other failure.
///
/// Where only victims failed, in a collective operation, or where a limit or a person stopped the run and all of
/// `places` wait for others, the first that had ended with 0 by itself is to blame: as Cause::kEndedEarly, with who
/// waited for it where. A victim that gave up may have waited for a rank that lives: then `places` may show none
/// elsewhere. The exit code stays that of the failure, of the limit or of the signal.
/// \param others_lived  when the first failed, besides those of `records` that lrun stopped
Verdict judge(const RunEnd& end, const std::vector<FailureRecord>& records, const std::vector<RankPlace>& places = {},
              bool others_lived = false);

/// Those of `records` by which judge() finds the culprit and who is overruled, the one that failed first; at most
/// seven. What is decisive among those of several sets is decisive among all their records. Pure.
std::vector<FailureRecord> decisive_records(const std::vector<FailureRecord>& records);

}  // namespace lrun::inline core
