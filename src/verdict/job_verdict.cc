#include "verdict/job_verdict.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/json_integer.h"

namespace lrun {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostJsonBytes = std::size_t{60} << 10U;
constexpr std::size_t kMostTextBytes = 1024;
constexpr std::size_t kMostRanks = 4096;  ///< in each list: a node has that many workers only by mistake
constexpr std::int64_t kNanoseconds = 1'000'000'000;

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json json_of(const RunEnd& end) {
  return {{"kind", name_of(end.kind)},          {"signal", end.signal_number},
          {"limit_ms", end.limit_ms},           {"who", end.who.substr(0, kMostTextBytes)},
          {"grace_expired", end.grace_expired}, {"node", end.node.substr(0, kMostTextBytes)},
          {"node_rank", end.node_rank}};
}

std::vector<int> ranks_from(const Json& json) {
  std::vector<int> ranks;
  for (const Json& rank : json) ranks.push_back(json_integer(rank));
  return ranks;
}

std::optional<RunEnd> run_end_from(const Json& json) {
  constexpr int kMostSignal = 64;
  const auto kind = run_end_named(json.at("kind").get<std::string>());
  if (!kind) return std::nullopt;
  RunEnd end{*kind};
  end.signal_number = json_integer(json.at("signal"));
  end.limit_ms = json_integer<std::int64_t>(json.at("limit_ms"));
  end.who = json.at("who").get<std::string>().substr(0, kMostTextBytes);
  end.grace_expired = json.at("grace_expired").get<bool>();
  end.node = json.at("node").get<std::string>().substr(0, kMostTextBytes);
  end.node_rank = json_integer(json.at("node_rank"));
  const bool sound = end.signal_number >= 0 && end.signal_number <= kMostSignal && end.limit_ms >= 0;
  // The signal is passed on to our workers.
  const bool stops = end.kind != RunEnd::Kind::kInterrupted ||
                     (end.signal_number > 0 && end.signal_number != SIGKILL && end.signal_number != SIGSTOP);
  return sound && stops && end.node_rank >= -1 ? std::optional(std::move(end)) : std::nullopt;
}

/// Neither a success nor the answer to lrun's own signal without an account of its own.
bool may_be_the_cause(const FailureRecord& record) {
  return !record.success() && (!record.stopped_by_lrun() || record.error_time > 0);
}

void shift_times(FailureRecord& record, const ClockShift& shift) {
  record.steady_ns += shift.steady_ns;
  record.wall_ns += shift.wall_ns;
  if (record.error_time > 0) {
    const std::int64_t half = shift.wall_ns < 0 ? -kNanoseconds / 2 : kNanoseconds / 2;
    record.error_time = std::max<std::int64_t>(1, record.error_time + (shift.wall_ns + half) / kNanoseconds);
  }
}

std::vector<int> bounded(std::vector<int> ranks) {
  if (ranks.size() > kMostRanks) ranks.resize(kMostRanks);
  return ranks;
}

/// Who decided first; a report without a reason of its own only where nobody has one.
const NodeReport* first_reason(const std::vector<std::optional<NodeReport>>& reports) {
  const NodeReport* first = nullptr;
  for (const std::optional<NodeReport>& report : reports) {
    if (!report || report->end.kind == RunEnd::Kind::kSucceeded) continue;
    const auto order = [](const NodeReport& one) { return std::pair(!one.end.is_ours(), one.end_ns); };
    if (first == nullptr || order(*report) < order(*first)) first = &*report;
  }
  return first;
}

/// The reason as seen from our node.
RunEnd end_for(const NodeReport& decided, int own_rank) {
  RunEnd end = decided.end;
  if (end.is_ours()) {
    end.node = decided.node;
    end.node_rank = decided.node_rank;
  }
  if (end.node_rank == own_rank) {
    end.node.clear();
    end.node_rank = -1;
  }
  return end;
}

bool is_after(const FailureRecord& failure, std::int64_t since_ns) {
  return since_ns != 0 && failure.steady_ns >= since_ns;
}

/// That nodes of the job changed, and from when on what fails may be a consequence of it; 0: not known.
struct NodeChange {
  RunEnd end;
  std::int64_t since_ns = 0;
};

/// A lost node is told to all; workers are stopped for one that has joined, on one node before another.
std::optional<NodeChange> node_change(const std::vector<std::optional<NodeReport>>& reports,
                                      const std::optional<NodeLoss>& loss) {
  if (loss) return NodeChange{loss->end, loss->heard_ns};
  const NodeReport* first = nullptr;
  for (const std::optional<NodeReport>& report : reports) {
    if (!report || report->end.kind != RunEnd::Kind::kNodeJoined) continue;
    if (first == nullptr || report->end_ns < first->end_ns) first = &*report;
  }
  return first == nullptr ? std::nullopt : std::optional(NodeChange{first->end, first->end_ns});
}

bool may_follow_from(const Verdict& verdict, const NodeChange& change) {
  if (verdict.end.kind != RunEnd::Kind::kWorkerFailed) return false;
  return !verdict.culprit || is_victim(verdict.culprit->cause) || is_after(*verdict.culprit, change.since_ns);
}

void append(std::vector<int>& all, const std::vector<int>& more, const Verdict& verdict) {
  for (const int rank : more) {
    if (!verdict.culprit || verdict.culprit->rank != rank) all.push_back(rank);
  }
}

}  // namespace

NodeReport report_of(const std::string& node, int node_rank, const RunEnd& end, std::int64_t end_ns,
                     const std::vector<FailureRecord>& records, const ClockShift& shift) {
  NodeReport report{.node = node, .node_rank = node_rank, .end = end, .end_ns = end_ns + shift.steady_ns};
  for (const FailureRecord& record : records) {
    if (!may_be_the_cause(record)) continue;
    report.failures.push_back(record);
    shift_times(report.failures.back(), shift);
  }
  std::stable_sort(
      report.failures.begin(), report.failures.end(), [](const FailureRecord& left, const FailureRecord& right) {
        return std::pair(is_victim(left.cause), left.steady_ns) < std::pair(is_victim(right.cause), right.steady_ns);
      });
  if (report.failures.size() > NodeReport::kMostFailures) report.failures.resize(NodeReport::kMostFailures);
  const Verdict fates = judge({RunEnd::Kind::kInterrupted}, records);  // with nobody to blame, all are counted
  report.stopped_by_signal = bounded(fates.stopped_by_signal);
  report.killed = bounded(fates.killed);
  report.lost = bounded(fates.lost);
  report.failed = bounded(fates.failed_later);
  report.succeeded = fates.succeeded;
  return report;
}

std::string to_json(const NodeReport& report) {
  std::vector<FailureRecord> failures = report.failures;
  while (true) {
    std::vector<std::string> texts;
    for (const FailureRecord& record : failures) texts.push_back(to_json(record));
    std::string text = dumped({{"node", report.node.substr(0, kMostTextBytes)},
                               {"node_rank", report.node_rank},
                               {"end", json_of(report.end)},
                               {"end_ns", report.end_ns},
                               {"wants_no_more", report.wants_no_more},
                               {"failures", std::move(texts)},
                               {"stopped_by_signal", report.stopped_by_signal},
                               {"killed", report.killed},
                               {"lost", report.lost},
                               {"failed", report.failed},
                               {"succeeded", report.succeeded}});
    if (text.size() <= kMostJsonBytes || failures.empty()) return text;
    failures.pop_back();
  }
}

std::optional<NodeReport> node_report_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    NodeReport report;
    report.node = json.at("node").get<std::string>();
    report.node_rank = json_integer(json.at("node_rank"));
    const std::optional<RunEnd> end = run_end_from(json.at("end"));
    if (!end || report.node_rank < 0) return std::nullopt;
    report.end = *end;
    report.end_ns = json_integer<std::int64_t>(json.at("end_ns"));
    report.wants_no_more = json.at("wants_no_more").get<bool>();
    for (const Json& record : json.at("failures")) {
      auto failure = failure_record_from_json(record.get<std::string>());
      if (!failure || report.failures.size() == NodeReport::kMostFailures) return std::nullopt;
      report.failures.push_back(std::move(*failure));
    }
    report.stopped_by_signal = ranks_from(json.at("stopped_by_signal"));
    report.killed = ranks_from(json.at("killed"));
    report.lost = ranks_from(json.at("lost"));
    report.failed = ranks_from(json.at("failed"));
    report.succeeded = std::max(0, json_integer(json.at("succeeded")));
    return report;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Verdict judge_job(const std::vector<std::optional<NodeReport>>& reports, int own_rank,
                  const std::optional<NodeLoss>& loss) {
  const NodeReport* const decided = first_reason(reports);
  std::vector<FailureRecord> failures;
  for (const std::optional<NodeReport>& report : reports) {
    if (report) failures.insert(failures.end(), report->failures.begin(), report->failures.end());
  }
  Verdict verdict = judge(decided == nullptr ? RunEnd{} : end_for(*decided, own_rank), failures);
  const std::optional<NodeChange> change = node_change(reports, loss);
  if (change && (decided == nullptr || may_follow_from(verdict, *change))) verdict = judge(change->end, failures);
  verdict.stopped_by_signal.clear();
  verdict.killed.clear();
  verdict.lost.clear();
  verdict.failed_later.clear();
  verdict.succeeded = 0;
  for (const std::optional<NodeReport>& report : reports) {
    if (!report) continue;
    append(verdict.stopped_by_signal, report->stopped_by_signal, verdict);
    append(verdict.killed, report->killed, verdict);
    append(verdict.lost, report->lost, verdict);
    append(verdict.failed_later, report->failed, verdict);
    verdict.succeeded += report->succeeded;
    verdict.end.grace_expired = verdict.end.grace_expired || report->end.grace_expired;
  }
  return verdict;
}

std::string to_json(const StopNotice& notice) {
  return dumped({{"end", json_of(notice.end)}, {"cause", notice.cause ? Json(to_json(*notice.cause)) : Json()}});
}

std::optional<StopNotice> stop_notice_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const std::optional<RunEnd> end = run_end_from(json.at("end"));
    if (!end || end->kind == RunEnd::Kind::kSucceeded) return std::nullopt;
    StopNotice notice{*end, {}};
    if (!json.at("cause").is_null()) {
      notice.cause = failure_record_from_json(json.at("cause").get<std::string>());
      if (!notice.cause) return std::nullopt;
    }
    return notice;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun
