#include "verdict/job_verdict.h"

namespace lrun::inline core {
namespace {

using Reason = JobReport::Reason;

/// The reason as our node reports it.
RunEnd end_for(const Reason& reason, int own_rank) {
  RunEnd end = reason.end;
  if (end.node_rank == own_rank) {
    end.node.clear();
    end.node_rank = -1;
  }
  return end;
}

/// A node whose report is missing or unreadable may have failed.
RunEnd unknown_end() { return {.kind = RunEnd::Kind::kLauncherFailed, .who = "the result of one node is not known"}; }

bool is_after(const FailureRecord& failure, std::int64_t since_ns) {
  return since_ns != 0 && failure.steady_ns >= since_ns;
}

/// A change of the job's nodes, and since when failures may be its consequences; 0: not known.
struct NodeChange {
  RunEnd end;
  std::int64_t since_ns = 0;
};

/// All nodes get the notice of a lost node at once. For a node that has joined, each node stops its workers in its own
/// time.
std::optional<NodeChange> node_change(const std::optional<Reason>& joined, const std::optional<NodeLoss>& loss) {
  if (loss) return NodeChange{loss->end, loss->last_seen_ns};
  return joined ? std::optional(NodeChange{joined->end, joined->end_ns}) : std::nullopt;
}

bool may_follow_from(const Verdict& verdict, const NodeChange& change) {
  if (verdict.end.kind != RunEnd::Kind::kWorkerFailed) return false;
  const FailureRecord* const failure = verdict.failure();
  return failure == nullptr || is_victim(failure->cause) || is_after(*failure, change.since_ns);
}

/// judge() counted only the decisive failures.
void count_others(Verdict& verdict, const Fates& all) {
  verdict.others = all;
  if (verdict.culprit) {
    int& of_culprit = verdict.others.of(*verdict.culprit);
    if (of_culprit > 0) --of_culprit;
  }
  verdict.stopped_by_signal.clear();
  verdict.killed.clear();
  verdict.lost.clear();
  verdict.failed_later.clear();
}

bool show_all_workers(const std::vector<RankPlace>& places, std::int64_t ranks) {
  std::int64_t told = 0;
  for (const RankPlace& place : places) told += place.count;
  return told >= ranks;
}

}  // namespace

Verdict judge_job(const JobReport& report, int own_rank, const std::optional<NodeLoss>& loss) {
  const std::int64_t stopped = std::int64_t{report.fates.stopped_by_signal} + report.fates.killed + report.fates.lost;
  const RunEnd end = report.reason ? end_for(*report.reason, own_rank) : RunEnd{};
  // The others may have waited for a rank that was not looked at.
  const bool all_seen = show_all_workers(report.places, stopped);
  Verdict verdict = judge(end, report.failures, all_seen ? report.places : std::vector<RankPlace>(), stopped > 0);
  verdict.places = report.places;
  const std::optional<NodeChange> change = node_change(report.joined, loss);
  if (change && (!report.reason || may_follow_from(verdict, *change))) verdict = judge(change->end, report.failures);
  if (verdict.end.kind == RunEnd::Kind::kSucceeded && report.is_incomplete) verdict = judge(unknown_end(), {});
  count_others(verdict, report.fates);
  verdict.screen = report.screen;
  verdict.checkpoint_ns = report.checkpoint_ns;
  verdict.end.grace_expired = verdict.end.grace_expired || report.grace_expired;
  return verdict;
}

}  // namespace lrun::inline core
