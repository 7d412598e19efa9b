#include "cli/job_run.h"

#include <chrono>
#include <utility>

namespace lrun {
namespace {

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

JobRun::JobRun(Job& job, Membership membership, std::string meeting, RunObserver& next, Calls calls)
    : job_(job),
      membership_(std::move(membership)),
      meeting_(std::move(meeting)),
      next_(next),
      calls_(std::move(calls)) {
  job_.set_events({.begun = [this](const Membership& next_round) { begun(next_round); },
                   .waiting = [](const std::string&) {},
                   .failed = [](const std::string&, const std::string&) {},
                   .stop = [this](const std::string& text) { told_to_stop(text); },
                   .lost = [this](const std::string& node, const std::string& how) { node_lost(node, how); },
                   .over = [this](const std::vector<std::string>& reports) { round_over(reports); }});
}

void JobRun::attempt_over(const RunOutcome& outcome, bool wants_no_more) {
  own_report_ = report_of(membership_.self().name, membership_.node_rank, outcome.end,
                          end_ns_ != 0 ? end_ns_ : steady_now_ns(), outcome.records, shift());
  own_report_.wants_no_more = wants_no_more;
  state_ = State::kReported;
  if (alone_) return judge_round({own_report_});
  job_.report(to_json(own_report_));
}

void JobRun::ready() {
  state_ = State::kIsReady;
  job_.ready();
}

void JobRun::stop_others(const RunEnd& end) {
  final_ = true;
  tell(end, nullptr);
}

void JobRun::start_failed(const FailureRecord& record) {
  const RunEnd end{RunEnd::Kind::kStartFailed};
  tell(end, &record);
  job_.report(
      to_json(report_of(membership_.self().name, membership_.node_rank, end, steady_now_ns(), {record}, shift())));
  state_ = State::kDone;
}

void JobRun::bye() {
  state_ = State::kDone;
  job_.bye();
}

/// A reason that came from another node is known there.
void JobRun::stopping(const RunEnd& end, const FailureRecord* cause, int others) {
  end_ns_ = steady_now_ns();
  if (end.is_ours()) {
    tell(end, cause);
  } else if (cause == nullptr && their_cause_) {
    cause = &*their_cause_;
  }
  next_.stopping(end, cause, others);
}

void JobRun::tell(const RunEnd& end, const FailureRecord* cause) {
  StopNotice notice{end, {}};
  notice.end.node = membership_.self().name;
  notice.end.node_rank = membership_.node_rank;
  if (cause != nullptr) notice.cause = *cause;
  job_.stopping(to_json(notice));
}

void JobRun::told_to_stop(const std::string& text) {
  const std::optional<StopNotice> notice = stop_notice_from_json(text);
  const RunEnd end = notice ? notice->end : RunEnd{.kind = RunEnd::Kind::kWorkerFailed, .node = meeting_};
  final_ = final_ || (end.kind != RunEnd::Kind::kWorkerFailed && end.kind != RunEnd::Kind::kHang);
  if (state_ == State::kReported || state_ == State::kDone) return;  // what is to be judged comes with the reports
  if (notice) their_cause_ = notice->cause;
  calls_.stop(end);
}

void JobRun::node_lost(const std::string& node, const std::string& how) {
  if (state_ == State::kDone) return;
  alone_ = alone_ || node.empty();
  if (!loss_) {
    const std::string who = node.empty() ? "the meeting at " + meeting_ : "node " + node;
    loss_ = RunEnd{.kind = RunEnd::Kind::kNodeLost, .who = who + " is lost: " + how, .node = who};
  }
  if (state_ != State::kReported) return calls_.stop(*loss_);
  if (alone_) judge_round({own_report_});
}

void JobRun::round_over(const std::vector<std::string>& reports) {
  if (state_ != State::kReported) return;
  std::vector<std::optional<NodeReport>> read;
  read.reserve(reports.size());
  for (const std::string& report : reports) read.push_back(node_report_from_json(report));
  judge_round(read);
}

void JobRun::judge_round(const std::vector<std::optional<NodeReport>>& reports) {
  bool final = final_ || loss_.has_value();
  for (const std::optional<NodeReport>& report : reports) final = final || !report || report->wants_no_more;
  state_ = State::kDeciding;
  calls_.over(judge_job(reports, membership_.node_rank, loss_), final);
}

void JobRun::begun(const Membership& membership) {
  if (state_ != State::kIsReady) return;
  membership_ = membership;
  state_ = State::kRunning;
  end_ns_ = 0;
  their_cause_.reset();
  calls_.begin();
}

ClockShift JobRun::shift() const {
  const ClockOffset& offset = job_.clock_offset();
  return {offset.steady_ns, offset.wall_ns};
}

}  // namespace lrun
