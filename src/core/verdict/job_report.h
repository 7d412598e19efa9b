#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/judge.h"

namespace lrun::inline core {

/// The result of one attempt on some nodes of a job: on one, as its launcher reports it, or on all. Its size does not
/// grow with the number of nodes. All times are of one clock for the whole job.
struct JobReport {
  struct Reason {
    RunEnd end;                  ///< `node` is where it was decided, also when that is the node that reports
    std::int64_t end_ns = 0;     ///< of the decision, on the steady clock
    bool is_first_hand = false;  ///< reported by the node that decided it

    bool operator==(const Reason&) const = default;
  };

  std::optional<Reason> reason;         ///< of the node that stopped first; empty: all nodes succeeded
  std::optional<Reason> joined;         ///< of the node that first stopped its workers because another node joined
  bool wants_no_more = false;           ///< the user asked for the end of the run: no attempt may follow
  bool is_incomplete = false;           ///< the result of some node is not known
  bool grace_expired = false;           ///< workers were killed because they did not end in time
  std::vector<FailureRecord> failures;  ///< decisive_records(), and the first worker that ended with 0
  std::vector<RankPlace> places;        ///< where workers were before they were stopped; empty: not looked at
  Fates fates;                          ///< of all workers
  ScreenLines screen;
  std::int64_t checkpoint_ns = 0;  ///< as in Verdict: of the node that has the newest one

  bool operator==(const JobReport&) const = default;
};

/// How far the leader's clocks are ahead of ours.
struct ClockShift {
  std::int64_t steady_ns = 0;
  std::int64_t wall_ns = 0;

  bool operator==(const ClockShift&) const = default;
};

/// The report of a node whose attempt ended with `end` at `end_ns` of its own clock; `records` are those of all its
/// workers.
JobReport report_of(const std::string& node, int node_rank, const RunEnd& end, std::int64_t end_ns,
                    const std::vector<FailureRecord>& records, const ClockShift& shift);

/// At most 60 KiB. Where failures do not fit, first the lines that they printed are left out, then the failures
/// themselves, beginning with those that are the least likely cause.
std::string to_json(const JobReport& report);
/// Empty when `json` is not JSON, lacks a field, or has a value out of range.
std::optional<JobReport> job_report_from_json(std::string_view json);

/// Merges all `reports`, as JSON. A report that is empty or cannot be read makes the result is_incomplete.
std::string merge_reports(const std::vector<std::string>& reports);

/// Why a node stops its workers, and the worker to blame so far. Sent to the other nodes at that moment.
struct StopNotice {
  RunEnd end;
  std::optional<FailureRecord> cause;

  bool operator==(const StopNotice&) const = default;
};
std::string to_json(const StopNotice& notice);
std::optional<StopNotice> stop_notice_from_json(std::string_view json);

}  // namespace lrun::inline core
