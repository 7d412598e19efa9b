#include "run/job_observer.h"

#include <chrono>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "base/signal_names.h"
#include "rendezvous/admission.h"
#include "report/verdict_text.h"

namespace lrun::launcher {
namespace {

std::string why_it_left(const RunEnd& end, const FailureRecord* cause) {
  if (end.kind == RunEnd::Kind::kGuardDied) return "its lrun was killed";
  if (end.kind == RunEnd::Kind::kInterrupted) {
    return "its lrun received " + signal_name(end.signal_number) + " and left the job";
  }
  if (end.kind == RunEnd::Kind::kHeadLost) return reason_in_words(end);
  return "its workers could not be started: " + (cause != nullptr ? cause_in_words(*cause) : std::string());
}

}  // namespace

JobObserver::JobObserver(Job& job, Membership membership, const RendezvousPlan& rendezvous, RunObserver& next,
                         Calls calls)
    : job_(job), membership_(std::move(membership)), rendezvous_(rendezvous), next_(next), calls_(std::move(calls)) {
  job_.set_events(*this);
}

void JobObserver::waiting(const std::string& text) {
  if (told_.is_worth_a_line(text)) calls_.note("waiting for other nodes: " + text);
}

void JobObserver::not_published(const std::string& why) {
  calls_.warn("etcd does not keep what another node needs to hold the meeting: " + why);
}

void JobObserver::attempt_over(const RunOutcome& outcome, bool wants_no_more) {
  // What followed from a loss became known while workers were being stopped for it.
  const bool led_further = alone_ && loss_ && outcome.end.kind == RunEnd::Kind::kNodeLost;
  own_report_ =
      report_of(membership_.self.name, membership_.self.node_rank, led_further ? loss_->end : outcome.end,
                end_ns_ != 0 ? end_ns_ : nanoseconds(std::chrono::steady_clock::now()), outcome.records, shift());
  own_report_.wants_no_more = wants_no_more;
  own_report_.places = outcome.places;
  state_ = State::kReported;
  vanish();
  if (alone_) return judge_round(own_report_);
  job_.report(to_json(own_report_));
}

void JobObserver::ready(const RestartHistory& history) {
  state_ = State::kIsReady;
  job_.ready(history.used, to_json(history));
}

void JobObserver::stop_others(const RunEnd& end) {
  final_ = true;
  tell(end, nullptr);
}

bool JobObserver::leave_while_stopping(const RunEnd& end) {
  if (alone_) return false;
  if (membership_.num_nodes - lost_ == 1) return true;
  if (!may_leave(end)) return false;
  tell(end, nullptr);
  return true;
}

void JobObserver::start_failed(const FailureRecord& record) {
  const RunEnd end{RunEnd::Kind::kStartFailed};
  tell(end, &record);
  if (alone_) return;
  job_.report(to_json(report_of(membership_.self.name, membership_.self.node_rank, end,
                                nanoseconds(std::chrono::steady_clock::now()), {record}, shift())));
  bye(cause_in_words(record));
}

void JobObserver::cannot_clean_up() {
  if (job_.may_drop_out()) drop_out("what runs there cannot be ended");
}

void JobObserver::bye(const std::string& text) {
  state_ = State::kDone;
  vanish();
  job_.leave(text);
}

/// A reason that came from another node is known there.
void JobObserver::stopping(const RunEnd& end, const FailureRecord* cause, int others) {
  end_ns_ = nanoseconds(std::chrono::steady_clock::now());
  if (end.is_ours()) {
    tell(end, cause);
  } else if (cause == nullptr && their_cause_) {
    cause = &*their_cause_;
  }
  if (rendezvous_.of_ranks && others > 0) others = membership_.num_nodes - 1;
  next_.stopping(end, cause, others);
}

/// What ends this node's launcher need not end the job: somebody takes the node away or kills lrun there, the
/// connection to the head ends, or the program is missing there.
bool JobObserver::may_leave(const RunEnd& end) const {
  const int others = membership_.num_nodes - lost_ - 1;
  const bool enough = others >= rendezvous_.min_nodes;
  const bool can_come_back = rendezvous_.replacement > Duration::zero();
  const bool hands_over = job_.has_successors() && others > 0 && (enough || can_come_back);
  switch (end.kind) {
    case RunEnd::Kind::kGuardDied:
    case RunEnd::Kind::kHeadLost:
      return job_.may_drop_out() || hands_over;
    case RunEnd::Kind::kStartFailed:
      return job_.may_drop_out() && enough;
    case RunEnd::Kind::kInterrupted: {
      // A manager whose nodes do not come back signals all of them to end the job, with TERM also one that it takes.
      const bool is_taken = can_come_back || (enough && end.signal_number == SIGTERM);
      return is_taken && !end.by_head && others > 0 && (job_.may_drop_out() || hands_over);
    }
    default:
      return false;
  }
}

void JobObserver::drop_out(const std::string& why) {
  alone_ = final_ = true;
  vanishes_ = !job_.may_drop_out();
  if (!vanishes_) job_.drop_out(why);
}

/// Not before our workers are gone: the others begin at once.
void JobObserver::vanish() {
  if (std::exchange(vanishes_, false)) job_.abandon();
}

void JobObserver::tell(const RunEnd& end, const FailureRecord* cause) {
  if (may_leave(end)) {
    const bool is_alone = end.kind == RunEnd::Kind::kGuardDied || end.kind == RunEnd::Kind::kHeadLost;
    if (!is_alone) calls_.note("this node leaves the job" + who_goes_on(lost_ + 1));
    return drop_out(why_it_left(end, cause));
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
  if (state_ == State::kReported || state_ == State::kDone) return;  // what is to be judged comes with the reports
  if (notice) their_cause_ = notice->cause;
  // Whoever lost a rank that had ended early is a victim, too: here may be the one that kept it waiting.
  calls_.stop(end, their_cause_ && (is_victim(their_cause_->cause) || their_cause_->cause == Cause::kEndedEarly));
}

void JobObserver::lost(const std::string& node, const std::string& how, std::int64_t heard_ns,
                       const std::string& spare) {
  if (state_ == State::kDone) return;
  ++lost_;
  alone_ = alone_ || node.empty();
  const std::string who = node.empty() ? "the meeting at " + rendezvous_.host : "node " + node;
  const std::string text = who + " is lost: " + how;
  const RunEnd end{.kind = RunEnd::Kind::kNodeLost, .who = text + (alone_ ? "" : takes_its_place(spare)), .node = who};
  note_loss(end, text, heard_ns);
  const bool between = state_ == State::kDeciding || state_ == State::kIsReady;
  if (between && !alone_) return calls_.note(end.who);                             // the next attempt is without it
  if (state_ == State::kRunning && end_ns_ != 0 && !alone_) calls_.note(end.who);  // the stop has another reason
  if (state_ != State::kReported) return calls_.stop(end, false);
  if (alone_) judge_round(own_report_);
}

/// Who is there in the next round is not known yet.
void JobObserver::leaderless(const std::string& how, std::int64_t heard_ns) {
  if (state_ == State::kDone) return;
  const RunEnd end{
      .kind = RunEnd::Kind::kNodeLost, .who = how + "; the nodes that are left meet anew", .node = "meeting"};
  note_loss(end, how, heard_ns);
  const bool between = state_ == State::kDeciding || state_ == State::kIsReady;
  if (between) return calls_.note(end.who);
  if (state_ == State::kRunning && end_ns_ != 0) calls_.note(end.who);  // the stop has another reason
  if (state_ != State::kReported) calls_.stop(end, false);
}

/// The first one counts.
void JobObserver::note_loss(const RunEnd& end, const std::string& text, std::int64_t heard_ns) {
  if (loss_) return;
  loss_ = NodeLoss{end, heard_ns};
  loss_text_ = text;
}

std::string JobObserver::takes_its_place(const std::string& spare) const {
  return spare.empty() ? who_goes_on(lost_) : "; node " + spare + ", a spare, takes its place";
}

/// '; 3 of 2:4 nodes go on'. \param lost  of the nodes of this attempt
std::string JobObserver::who_goes_on(int lost) const {
  const int left = membership_.num_nodes - lost;
  if (left >= rendezvous_.min_nodes) return "; " + nodes_in_words(left) + (left == 1 ? " goes on" : " go on");
  const std::string are_left = "; " + nodes_in_words(left) + (left == 1 ? " is left" : " are left");
  if (rendezvous_.replacement == Duration::zero()) return are_left + ", and no other can come";
  return are_left + (left == 1 ? ", which waits" : ", which wait") + " up to " +
         format_duration(rendezvous_.replacement) + " for others";
}

std::string JobObserver::nodes_in_words(int nodes) const {
  return std::to_string(nodes) + " of " + nodes_text(rendezvous_.min_nodes, rendezvous_.max_nodes) + " " +
         unit_of(rendezvous_.of_ranks, 2);
}

void JobObserver::resized(const std::string& node, const std::string& text) {
  if (state_ == State::kRunning) {
    calls_.stop({.kind = RunEnd::Kind::kNodeJoined, .who = text, .node = "node " + node}, false);
  }
}

/// Too few nodes are left and nobody has come, or one cannot go on. Also while workers are stopped for the loss that
/// led to it.
void JobObserver::ended(const std::string& why) {
  if (state_ == State::kDone) return;
  alone_ = true;
  if (!loss_) loss_ = NodeLoss{{.kind = RunEnd::Kind::kNodeLost, .node = "the job"}};
  loss_->end.who = loss_text_ + (loss_text_.empty() ? "" : "; ") + why;
  calls_.stop(RunEnd(loss_->end), false);
}

/// What cannot be read is not known to anybody.
void JobObserver::over(const std::string& report) {
  if (state_ != State::kReported) return;
  judge_round(job_report_from_json(report).value_or(JobReport{.is_incomplete = true}));
}

void JobObserver::judge_round(const JobReport& report) {
  const bool final = final_ || alone_ || report.wants_no_more || (report.is_incomplete && !loss_);
  state_ = State::kDeciding;
  calls_.over(judge_job(report, membership_.self.node_rank, loss_), final);
}

void JobObserver::begun(const Membership& membership) {
  if (state_ != State::kIsReady) return;
  membership_ = membership;
  state_ = State::kRunning;
  end_ns_ = 0;
  lost_ = 0;
  loss_.reset();
  loss_text_.clear();
  told_ = {};
  their_cause_.reset();
  calls_.begin();
}

ClockShift JobObserver::shift() const {
  const ClockOffset& offset = job_.clock_offset();
  return {offset.steady_ns, offset.wall_ns};
}

}  // namespace lrun::launcher
