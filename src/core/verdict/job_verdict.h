#pragma once

#include <cstdint>
#include <optional>

#include "verdict/job_report.h"

namespace lrun::inline core {

/// The loss of a node of the job.
struct NodeLoss {
  RunEnd end;                     ///< kNodeLost
  std::int64_t last_seen_ns = 0;  ///< its last sign of life, on the clock that reports use; 0: not known

  bool operator==(const NodeLoss&) const = default;
};

/// Judges an attempt of the whole job. Every node gets the same verdict from the same report. Pure.
///
/// The reason is the one that was decided first, with two exceptions. A lost node wins over failures that look like its
/// consequences or came after its last sign of life. A node that has joined wins over failures since workers were
/// stopped for it. The culprit is found among all nodes' failures as judge() finds it on one node; the other workers
/// are only counted. Without a reason the job has succeeded only when the results of all nodes are known.
/// \param report    of all nodes
/// \param own_rank  our node: its reasons are 'here'
/// \param loss      of a node, if one is lost
Verdict judge_job(const JobReport& report, int own_rank, const std::optional<NodeLoss>& loss);

}  // namespace lrun::inline core
