#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/judge.h"

namespace lrun {

/// What one node's workers came to in one attempt, as its launcher tells all others. Times are those of one clock for
/// the whole job.
struct NodeReport {
  std::string node;
  int node_rank = 0;
  RunEnd end;
  std::int64_t end_ns = 0;              ///< when that was decided, on the steady clock
  bool wants_no_more = false;           ///< somebody asked for the end of the run: no attempt may follow
  std::vector<FailureRecord> failures;  ///< those that may be the cause, the first ones, at most kMostFailures
  std::vector<int> stopped_by_signal;   ///< ranks, as in Verdict
  std::vector<int> killed;
  std::vector<int> lost;
  std::vector<int> failed;  ///< by themselves, the cause included
  int succeeded = 0;

  static constexpr std::size_t kMostFailures = 8;

  bool operator==(const NodeReport&) const = default;
};

/// What the holder's clocks show more than ours.
struct ClockShift {
  std::int64_t steady_ns = 0;
  std::int64_t wall_ns = 0;

  bool operator==(const ClockShift&) const = default;
};

/// That a node of the job is gone.
struct NodeLoss {
  RunEnd end;                 ///< kNodeLost
  std::int64_t heard_ns = 0;  ///< its last sign of life, on the clock that reports use; 0: not known

  bool operator==(const NodeLoss&) const = default;
};

/// The report of a node whose attempt came to `end` at `end_ns` of its own clock, with the records of all its workers.
NodeReport report_of(const std::string& node, int node_rank, const RunEnd& end, std::int64_t end_ns,
                     const std::vector<FailureRecord>& records, const ClockShift& shift);

/// At most 60 KiB: failures that do not fit are left out, the later ones first.
std::string to_json(const NodeReport& report);
/// Empty for what is not JSON, lacks a field, or holds a value out of its range.
std::optional<NodeReport> node_report_from_json(std::string_view json);

/// Judges an attempt of the whole job; the same on every node for the same reports. Pure.
///
/// The reason is the one that was decided first; but a node's loss wins over failures that look like its consequences,
/// or came after its last sign of life, and so does a node that has joined over failures since workers were stopped for
/// it. The culprit is found among all nodes' failures as judge() finds it among one's.
/// \param reports    of all nodes, by node rank; empty where one is missing
/// \param own_rank   our node: its reasons are 'here'
/// \param loss       that a node is lost, where one is
Verdict judge_job(const std::vector<std::optional<NodeReport>>& reports, int own_rank,
                  const std::optional<NodeLoss>& loss);

/// Why a node stops, with the worker to blame so far, as it is told while it happens.
struct StopNotice {
  RunEnd end;
  std::optional<FailureRecord> cause;

  bool operator==(const StopNotice&) const = default;
};
std::string to_json(const StopNotice& notice);
std::optional<StopNotice> stop_notice_from_json(std::string_view json);

}  // namespace lrun
