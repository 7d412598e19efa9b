#pragma once

#include <cstdint>
#include <optional>

#include "verdict/job_report.h"

namespace lrun::inline core {

/// That a node of the job is gone.
struct NodeLoss {
  RunEnd end;                 ///< kNodeLost
  std::int64_t heard_ns = 0;  ///< its last sign of life, on the clock that reports use; 0: not known

  bool operator==(const NodeLoss&) const = default;
};

/// Judges an attempt of the whole job; the same on every node for the same report. Pure.
///
/// The reason is the one that was decided first; but a node's loss wins over failures that look like its consequences,
/// or came after its last sign of life, and so does a node that has joined over failures since workers were stopped for
/// it. The culprit is found among all nodes' failures as judge() finds it among one's; of the others there are only
/// numbers. Without a reason, what a node came to must be known of all for the job to have succeeded.
/// \param report    of all nodes
/// \param own_rank  our node: its reasons are 'here'
/// \param loss      that a node is lost, where one is
Verdict judge_job(const JobReport& report, int own_rank, const std::optional<NodeLoss>& loss);

}  // namespace lrun::inline core
