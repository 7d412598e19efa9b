// In: events of the workers here, and of the job. Out: notices and reports for the other nodes; for the run, why it has
// to stop and the verdict of all nodes. AttemptLoop owns one in a job of several nodes.
#include "run/job_observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "base/signal_names.h"
#include "report/verdict_text.h"

namespace lrun::launcher {
namespace {

std::string leaving_text(const RunEnd& end, const FailureRecord* cause) {
  if (end.kind == RunEnd::Kind::kGuardDied) return "its lrun was killed";
  if (end.kind == RunEnd::Kind::kInterrupted) {
    return fmt::format("its lrun received {} and left the job", signal_name(end.signal_number));
  }
  if (end.kind == RunEnd::Kind::kNotice) return fmt::format("its lrun got a {} and left the job", end.who);
  if (end.kind == RunEnd::Kind::kHeadLost) return reason_text(end);
  return "its workers could not be started: " + (cause != nullptr ? cause_text(*cause) : std::string());
}

/// Nobody reads what the launcher says that ends so.
bool is_mute(const RunEnd& end) { return end.kind == RunEnd::Kind::kGuardDied || end.kind == RunEnd::Kind::kHeadLost; }

/// For the others, when their leader leaves: the workers of all nodes have the store here, and may save together.
StopNotice stop_with_leader(const Membership& membership, const std::string& why) {
  const std::string leader = "node " + membership.self.name;
  return {{.kind = RunEnd::Kind::kNodeLost,
           .who = leader + " is lost: " + why + "; the remaining nodes meet again",
           .node = leader,
           .node_rank = membership.self.node_rank},
          {}};
}

JobReport report_of_node(const Membership& membership, const ClockOffset& offset, const RunEnd& end,
                         std::int64_t end_ns, const std::vector<FailureRecord>& records) {
  return report_of(membership.self.name, membership.self.node_rank, end, end_ns, records,
                   {offset.steady_ns, offset.wall_ns});
}

}  // namespace

JobObserver::JobObserver(JobMember& job, Membership membership, const RendezvousPlan& rendezvous, RunObserver& next,
                         Calls calls)
    : PassingObserver(next),
      job_(job),
      membership_(std::move(membership)),
      rendezvous_(rendezvous),
      calls_(std::move(calls)) {
  job_.set_events(*this);
}

void JobObserver::waiting(const std::string& text) {
  if (!round_.printed.is_worth_a_line(text)) return;
  const bool may_come = rendezvous_.replacement > Duration::zero();
  const std::string limit = may_come ? "up to " + format_duration(rendezvous_.replacement) + " " : "";
  calls_.note(fmt::format("waiting {}for other {}: {}", limit, unit_of(rendezvous_.of_ranks, 2), text));
}

void JobObserver::not_published(const std::string& why) {
  calls_.warn("etcd does not keep the state that another node needs to lead the rendezvous: " + why);
}

void JobObserver::attempt_over(const RunOutcome& outcome, bool wants_no_more, ScreenLines screen,
                               std::int64_t checkpoint_ns) {
  // While workers were being stopped for a loss it became known what followed from the loss.
  const bool led_further = alone_ && round_.loss && outcome.end.kind == RunEnd::Kind::kNodeLost;
  own_report_ = report_of_node(membership_, job_.clock_offset(), led_further ? round_.loss->end : outcome.end,
                               round_.end_ns != 0 ? round_.end_ns : nanoseconds(steady_now()), outcome.records);
  own_report_.wants_no_more = wants_no_more;
  own_report_.places = outcome.places;
  own_report_.screen = std::move(screen);
  own_report_.checkpoint_ns = checkpoint_ns;
  state_ = State::kReported;
  if (std::exchange(abandons_when_idle_, false)) job_.abandon();  // the other nodes begin at once
  if (alone_) return judge_round(own_report_);
  job_.report(to_json(own_report_));
}

void JobObserver::ready(const RestartHistory& history, const std::vector<FileOwner>& keeps) {
  state_ = State::kIsReady;
  job_.ready(history.used, to_json(history), keeps);
}

void JobObserver::stop_others(const RunEnd& end) {
  final_ = true;
  notify_of_stop(end, nullptr);
}

bool JobObserver::leave_while_stopping(const RunEnd& end) {
  if (alone_) return false;
  const JobStrength job = strength();
  if (job.others == 0) return true;
  if (!may_leave(end, job)) return false;
  notify_of_stop(end, nullptr);
  return true;
}

void JobObserver::start_failed(const FailureRecord& record) {
  const RunEnd end{RunEnd::Kind::kStartFailed};
  notify_of_stop(end, &record);
  if (alone_) return;
  job_.report(to_json(report_of_node(membership_, job_.clock_offset(), end, nanoseconds(steady_now()), {record})));
  leave(cause_text(record));
}

void JobObserver::cannot_clean_up() {
  if (job_.may_drop_out()) drop_out("processes there cannot be ended");
}

void JobObserver::leave(const std::string& text) {
  state_ = State::kDone;
  if (std::exchange(abandons_when_idle_, false)) job_.abandon();  // the other nodes begin at once
  job_.leave(text);
}

/// A reason that came from another node need not be sent there.
void JobObserver::stopping(const RunEnd& end, const FailureRecord* cause, RunningWorkers others) {
  round_.end_ns = nanoseconds(steady_now());
  if (end.is_ours()) {
    notify_of_stop(end, cause);
  } else if (cause == nullptr && round_.their_cause) {
    cause = &*round_.their_cause;
  }
  const bool stops_all = !alone_ && !end.changes_nodes();
  const bool failed_elsewhere = !end.is_ours() && cause != nullptr;
  if (stops_all) others.workers += membership_.world_size - membership_.self.workers - (failed_elsewhere ? 1 : 0);
  if (stops_all && !rendezvous_.of_ranks) others.nodes = membership_.num_nodes;
  PassingObserver::stopping(end, cause, others);
}

JobStrength JobObserver::strength() const {
  return {rendezvous_, membership_.num_nodes - round_.lost - 1, job_.may_drop_out(), job_.has_successors()};
}

void JobObserver::drop_out(const std::string& why) {
  alone_ = final_ = true;
  abandons_when_idle_ = !job_.may_drop_out();
  if (!abandons_when_idle_) job_.drop_out(why);
}

void JobObserver::notify_of_stop(const RunEnd& end, const FailureRecord* cause) {
  const JobStrength job = strength();
  if (may_leave(end, job)) {
    if (!is_mute(end)) calls_.note("this node leaves the job" + remaining_text(job.others, rendezvous_));
    const std::string why = leaving_text(end, cause);
    drop_out(why);
    // One Ctrl-C may reach the launchers of all nodes, and would hurry workers that are being stopped.
    const bool is_told =
        state_ == State::kRunning && (end.kind == RunEnd::Kind::kNotice || end.signal_number == SIGTERM);
    if (abandons_when_idle_ && is_told) job_.stopping(to_json(stop_with_leader(membership_, why)));
    return;
  }
  StopNotice notice{end, {}};
  notice.end.node = membership_.self.name;
  notice.end.node_rank = membership_.self.node_rank;
  if (cause != nullptr) notice.cause = *cause;
  job_.stopping(to_json(notice));
}

void JobObserver::stop(const std::string& text) {
  const std::optional<StopNotice> notice = stop_notice_from_json(text);
  const RunEnd end = notice ? notice->end : RunEnd{.kind = RunEnd::Kind::kWorkerFailed, .node = rendezvous_.host};
  final_ = final_ || !end.may_go_on();
  const bool leader_leaves = end.kind == RunEnd::Kind::kNodeLost && end.node_rank == membership_.leader;
  if (leader_leaves) round_.count_leader();
  if (state_ == State::kReported || state_ == State::kDone) return;  // the reports decide
  if (leader_leaves) return stop_for_loss(end, end.who, nanoseconds(steady_now()));
  if (notice) round_.their_cause = notice->cause;
  if (notice && end.node_rank == 0 && is_mute(end)) round_.first_is_gone = true;
  const std::optional<FailureRecord>& cause = round_.their_cause;
  // A rank that lost one which had ended early is a victim, too: the rank that kept it waiting may be here.
  calls_.stop(end, cause && (is_victim(cause->cause) || cause->cause == Cause::kEndedEarly));
}

void JobObserver::lost(const std::string& node, const std::string& how, std::int64_t heard_ns,
                       const std::string& spare) {
  if (state_ == State::kDone) return;
  if (!round_.leader_is_lost || node != membership_.leader_name) ++round_.lost;  // counted in leaderless()
  const std::vector<std::string>& names = membership_.first_names;  // launchers of one host may have one name
  const bool is_first = node == names.front() && std::count(names.begin(), names.end(), node) == 1;
  round_.first_is_gone = round_.first_is_gone || is_first;
  alone_ = alone_ || node.empty();
  const std::string lost_one = node.empty() ? "the rendezvous at " + rendezvous_.host : "node " + node;
  const std::string text = lost_one + " is lost: " + how;
  const std::string follows = spare.empty() ? remaining_text(strength().others + 1, rendezvous_)
                                            : "; node " + spare + ", a spare, takes its place";
  const bool had_reported = state_ == State::kReported;
  stop_for_loss({.kind = RunEnd::Kind::kNodeLost, .who = text + (alone_ ? "" : follows), .node = lost_one}, text,
                heard_ns);
  if (alone_ && had_reported) judge_round(own_report_);
}

/// The nodes of the next round are not known yet.
void JobObserver::leaderless(const std::string& how, std::int64_t heard_ns) {
  if (state_ == State::kDone) return;
  round_.first_is_gone = round_.first_is_gone || membership_.leader == 0;
  if (membership_.leader) round_.count_leader();
  stop_for_loss({.kind = RunEnd::Kind::kNodeLost, .who = how + "; the remaining nodes meet again", .node = "meeting"},
                how, heard_ns);
}

/// The first loss of a round counts in its verdict. A loss that is not the reason of a stop is a note.
/// \param text  which node is lost and how, without what follows from it
void JobObserver::stop_for_loss(const RunEnd& end, const std::string& text, std::int64_t heard_ns) {
  if (!round_.loss) {
    round_.loss = NodeLoss{end, heard_ns};
    round_.loss_text = text;
  }
  const bool is_between = state_ == State::kDeciding || state_ == State::kIsReady;
  if (is_between && !alone_) return calls_.note(end.who);  // the next attempt is without it
  const bool has_other_reason = state_ == State::kRunning && round_.end_ns != 0 && !alone_;
  if (has_other_reason) calls_.note(end.who);
  if (state_ != State::kReported) calls_.stop(end, false);
}

void JobObserver::resized(const std::string& node, const std::string& text) {
  if (state_ != State::kRunning) return;
  calls_.stop({.kind = RunEnd::Kind::kNodeJoined, .who = text, .node = "node " + node}, false);
}

/// Too few nodes are left and none has come, or one cannot go on. It may come while workers are stopped for the loss
/// that led to it.
void JobObserver::ended(const std::string& why, bool by_leader) {
  if (state_ == State::kDone) return;
  all_were_told_ = by_leader && !alone_;
  alone_ = true;
  if (!round_.loss) round_.loss = NodeLoss{{.kind = RunEnd::Kind::kNodeLost, .node = "the job"}};
  round_.loss->end.who = round_.loss_text + (round_.loss_text.empty() ? "" : "; ") + why;
  calls_.stop(RunEnd(round_.loss->end), false);
}

/// A report that cannot be read counts as one that lacks all nodes.
void JobObserver::over(const std::string& report) {
  if (state_ != State::kReported) return;
  judge_round(job_report_from_json(report).value_or(JobReport{.is_incomplete = true}));
}

void JobObserver::judge_round(const JobReport& report) {
  const bool final = final_ || alone_ || report.wants_no_more || (report.is_incomplete && !round_.loss);
  state_ = State::kDeciding;
  calls_.over(judge_job(report, membership_.self.node_rank, round_.loss), final);
}

void JobObserver::begun(const Membership& membership) {
  if (state_ != State::kIsReady) return;
  membership_ = membership;
  state_ = State::kRunning;
  round_ = {};
  calls_.begin();
}

}  // namespace lrun::launcher
