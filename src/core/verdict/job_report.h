#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/judge.h"

namespace lrun::inline core {

/// What the workers of some nodes of a job came to in one attempt: of one, as its launcher tells it, or of all. Its
/// size does not grow with their number. Times are those of one clock for the whole job.
struct JobReport {
  struct Reason {
    RunEnd end;                  ///< `node` says where it was decided, on the node that reports, too
    std::int64_t end_ns = 0;     ///< when, on the steady clock
    bool is_first_hand = false;  ///< told by the node that decided it

    bool operator==(const Reason&) const = default;
  };

  std::optional<Reason> reason;         ///< of the node that stopped first; empty: all succeeded
  std::optional<Reason> joined;         ///< where workers were stopped first for a node that has joined
  bool wants_no_more = false;           ///< somebody asked for the end of the run: no attempt may follow
  bool is_incomplete = false;           ///< what some node came to is not known
  bool grace_expired = false;           ///< workers were killed because they did not end in time
  std::vector<FailureRecord> failures;  ///< those that decide who is the cause, and the first that ended with 0
  std::vector<RankPlace> places;        ///< where workers were before they were stopped, if anybody looked
  Fates fates;                          ///< of all workers

  bool operator==(const JobReport&) const = default;
};

/// What the holder's clocks show more than ours.
struct ClockShift {
  std::int64_t steady_ns = 0;
  std::int64_t wall_ns = 0;

  bool operator==(const ClockShift&) const = default;
};

/// The report of a node whose attempt came to `end` at `end_ns` of its own clock, with the records of all its workers.
JobReport report_of(const std::string& node, int node_rank, const RunEnd& end, std::int64_t end_ns,
                    const std::vector<FailureRecord>& records, const ClockShift& shift);

/// The report of the nodes of both. The same whatever is put together first.
JobReport put_together(const JobReport& one, const JobReport& other);

/// At most 60 KiB: where failures do not fit, what they printed is left out, and then the failures themselves, those
/// first that are the least likely cause.
std::string to_json(const JobReport& report);
/// Empty for what is not JSON, lacks a field, or holds a value out of its range.
std::optional<JobReport> job_report_from_json(std::string_view json);

/// All `reports` put together, as JSON; one that cannot be read is missing, and so is an empty one.
std::string gather_reports(const std::vector<std::string>& reports);

/// Why a node stops, with the worker to blame so far, as it is told while it happens.
struct StopNotice {
  RunEnd end;
  std::optional<FailureRecord> cause;

  bool operator==(const StopNotice&) const = default;
};
std::string to_json(const StopNotice& notice);
std::optional<StopNotice> stop_notice_from_json(std::string_view json);

}  // namespace lrun::inline core
