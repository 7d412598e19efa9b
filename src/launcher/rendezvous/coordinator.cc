// In: messages of the launchers of a job, the ends of their connections, and the time. Out: messages for them, in an
// Outbox. Called by RendezvousServer, which owns the connections and the clock, and by simulations in tests.
#include "rendezvous/coordinator.h"

#include <algorithm>

#include "base/clock.h"
#include "rendezvous/memory_neighbours.h"
#include "rendezvous/rank_assignment.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

/// In heartbeats: a node that was dead when a spare came is known to be dead by then.
constexpr int kHeartbeatsForSpares = 2;

/// The records that a newcomer has to fit: of the launchers that are here, and one that stands for those redirected.
std::vector<const JoinRecord*> records_of(const Roster& roster, const Redirection& redirection) {
  std::vector<const JoinRecord*> records;
  records.reserve(roster.launchers().size() + 1);
  for (const auto& [id, launcher] : roster.launchers()) records.push_back(&launcher.record);
  if (redirection.job()) records.push_back(&*redirection.job());
  return records;
}

/// Its rank is taken for as long as the job runs. The spare would wait in vain, and end with the code of success.
std::optional<Rejection> rejection_of_spare(const JoinRecord& spare, const Roster& roster, const Round& round) {
  if (!spare.node_rank) return std::nullopt;
  for (const ConnectionId id : round.members()) {
    const JoinRecord& member = roster.at(id).record;
    if (member.node_rank == spare.node_rank) return rank_is_taken(spare, member);
  }
  return std::nullopt;
}

/// \param can_join  a newcomer may take part in the next round, if there is a place
LauncherMessage spare_message(ConnectionId who, const Roster& roster, const Round& round, bool can_join) {
  const std::string all = nodes_text(roster.least(), roster.most());
  const std::vector<ConnectionId> next = roster.next_members(&round);
  const bool has_place = can_join && std::find(next.begin(), next.end(), who) != next.end();
  const std::string difference =
      difference_of_commands(roster.at(who).record, roster.launchers().begin()->second.record);
  return {.kind = Kind::kSpare,
          .text = "the job runs with " + std::to_string(round.size()) + " of " + all + " nodes: this node " +
                  (has_place ? "joins it in a moment" : "waits until it is needed") +
                  (difference.empty() ? "" : "; " + difference),
          .successors = round.successors()};
}

LauncherMessage resize_message(const std::vector<ConnectionId>& ids, const Roster& roster, const Round& round) {
  const std::string names = roster.newcomers_text(ids, round);
  const bool is_one = static_cast<int>(ids.size()) == round.size() + 1;
  const std::string all = nodes_text(roster.least(), roster.most());
  return {.kind = Kind::kResize,
          .round = round.number(),
          .text = (is_one ? "node " : "nodes ") + names + (is_one ? " has" : " have") + " joined: all start again on " +
                  std::to_string(ids.size()) + " of " + all + " nodes",
          .node = names};
}

LauncherMessage no_majority(int nodes, int of) { return {.kind = Kind::kEnded, .text = no_majority_text(nodes, of)}; }

LauncherMessage not_enough(const Roster& roster, Kind kind, Duration after, const std::string& who_is_there) {
  const std::string waited = after == Duration::zero() ? "" : " in " + format_duration(after);
  return {.kind = kind, .text = "not enough " + unit_of(roster.is_of_ranks(), 2) + waited + ": " + who_is_there};
}

/// The member `rank` leads. A few of the others are enough as its successors.
void name_leader(RankAssignment& assignment, int rank) {
  Membership& common = assignment.common;
  common.leader = rank;
  common.leader_name = assignment.members.at(static_cast<std::size_t>(rank)).name;
  std::erase_if(common.successors, [rank](const Successor& successor) { return successor.node_rank == rank; });
  if (common.successors.size() > Membership::kMostSuccessors) common.successors.resize(Membership::kMostSuccessors);
}

/// No two groups of members can go on, one from this round and one from the round before. That holds for the first
/// round, for one of the same members, and for one of all that a lost leader left.
bool is_known_at_once(const std::vector<ConnectionId>& ids, const std::optional<Failover>& failover,
                      const std::optional<Round>& before, int rounds_begun) {
  const bool has_ballot = failover && failover->ballot();
  if (!has_ballot && rounds_begun == 0) return true;
  const int expected = has_ballot ? failover->ballot()->members - 1 : before->began_with();
  return (has_ballot || before->is_known_to_all()) && static_cast<int>(ids.size()) == expected &&
         std::all_of(ids.begin(), ids.end(),
                     [&](ConnectionId id) { return has_ballot ? failover->has_voted(id) : before->has(id); });
}

}  // namespace

Coordinator::Coordinator(Options options, SteadyTime now)
    : times_(options.times),
      merge_(std::move(options.merge)),
      early_messages_(std::move(options.own_token)),
      hosts_(std::move(options.hosts)),
      timing_(options.times, now) {
  if (options.members_elect_leader) majority_.emplace();
}

void Coordinator::resume(const JobState& state, const std::optional<Ballot>& ballot, SteadyTime now) {
  timing_.open(now);
  // Only members of the round know of a ballot. A state in etcd may be that of another job with the same name.
  if (ballot) return go_on_from(state, ballot, now);
  early_messages_.await_member_of(state);
}

void Coordinator::go_on_from(const JobState& state, const std::optional<Ballot>& ballot, SteadyTime since) {
  phase_ = Phase::kDeciding;
  failover_.emplace(state, ballot, since);
  round_ = Round::lost(state.round);
  attempt_ = state.attempt;
  history_ = state.history;
  run_id_ = state.run_id;
}

void Coordinator::redirect_to(const std::optional<RendezvousAddress>& target, SteadyTime now) {
  if (!target) {
    redirection_.cancel();
    early_messages_.await_own();
    timing_.open(now);
    round_.reset();
    phase_ = Phase::kGathering;
    return;
  }
  // Launchers that come after the end are redirected, too; there is no one left to send away.
  const bool was_closed = phase_ == Phase::kClosed;
  const bool has_job = !was_closed && !roster_.empty();
  redirection_.redirect_to(*target, has_job ? std::optional(roster_.launchers().begin()->second.record) : std::nullopt);
  if (was_closed) return;
  failover_.reset();
  close(redirection_.message(), false);
}

void Coordinator::received(ConnectionId from, const LauncherMessage& message, SteadyTime now) {
  if (!roster_.has(from)) {
    const bool has_record = message.kind == Kind::kJoin || message.kind == Kind::kInvite;
    const bool may_be_early = message.kind == Kind::kReady || message.kind == Kind::kLeave;
    if (has_record ? !message.join : !may_be_early) return;
    early_messages_.receive(from, message);
    if (const auto state = early_messages_.take_state()) go_on_from(*state, std::nullopt, timing_.opened());
    return admit_waiting(now);
  }
  const bool is_member = round_ && round_->has(from);
  switch (message.kind) {
    case Kind::kStopping:
      // The launcher may not know of the next round yet. It never stops a round that it was ready to leave.
      if (is_member && (message.round == round_->number() || message.round + 1 == round_->number()) && round_->stop()) {
        outbox_.send(round_->members(from), {.kind = Kind::kStop, .round = round_->number(), .text = message.text});
      }
      break;
    case Kind::kBegun:
      if (majority_ && is_member && message.round == round_->number() && round_->acknowledge(from)) {
        majority_->last_round_is_known();
        outbox_.send(round_->members(), {.kind = Kind::kKnownToAll, .round = round_->number()});
      }
      break;
    case Kind::kReport:
      if (phase_ != Phase::kRunning || !is_member || message.round != round_->number()) break;
      round_->report(from, message.text, merge_);
      finish_round_if_reported(now);
      break;
    case Kind::kAsk:
      if (is_member) outbox_.send(round_->members(from), {.kind = Kind::kAsk, .text = message.text, .asker = from});
      break;
    case Kind::kAnswer:
      if (roster_.has(message.asker)) outbox_.send(message.asker, {.kind = Kind::kAnswer, .text = message.text});
      break;
    case Kind::kReady:
      ready(from, message, now);
      break;
    case Kind::kLeaderless:
      left(from, "its launcher lost the connection to the leader", now, now, true);
      break;
    case Kind::kDropOut:
      left(from, message.text, now, now);
      break;
    case Kind::kLeave:
      leave(from, message.text, now);
      break;
    default:
      break;
  }
}

void Coordinator::admit_waiting(SteadyTime now) {
  for (const auto& [id, message] : early_messages_.take_messages()) {
    if (message.kind == Kind::kJoin) {
      join(id, message, now);
    } else if (message.kind == Kind::kInvite) {
      invited(id, message, now);
    } else if (roster_.has(id)) {
      received(id, message, now);
    }
  }
}

void Coordinator::invited(ConnectionId from, const LauncherMessage& invitation, SteadyTime now) {
  const JoinRecord& job = *invitation.join;
  const bool is_here = !redirection_.target();
  if (redirection_.was_member(job.token) || (phase_ == Phase::kClosed && is_here)) return;
  if (const auto rejection = rejection_of(job, records_of(roster_, redirection_), true)) {
    return outbox_.send(from, {.kind = Kind::kRejected, .text = rejection->why});
  }
  // A job that has begun stays where it is; one that has not gives way.
  if (phase_ != Phase::kGathering && is_here) {
    return outbox_.send(from, {.kind = Kind::kHasBegun, .round = round_->number()});
  }
  redirect_to(RendezvousAddress{job.address, job.standby_port}, now);
}

void Coordinator::join(ConnectionId from, const LauncherMessage& message, SteadyTime now) {
  const JoinRecord& record = *message.join;
  if (const auto report = failed_start_.report_for(record)) {
    return outbox_.send(from, {.kind = Kind::kOver, .text = *report}, true);
  }
  if (redirection_.sends_back() && !message.resumes) return outbox_.send(from, redirection_.back_message(), true);
  // A launcher may connect again before its last connection is known to be dead, and messages on the last one may be
  // read behind those on the new one.
  if (const std::optional<ConnectionId> other = roster_.find(record.token)) {
    if (*other > from) return outbox_.send(from, {.kind = Kind::kRejected}, true);
    left(*other, "it connected again", now, now);
  }
  const bool is_over = phase_ == Phase::kClosed && !redirection_.target();
  const auto rejection =
      is_over ? Rejection{"the job is over"}
              : admission_.check(record, records_of(roster_, redirection_), phase_ != Phase::kGathering, now);
  if (rejection) {
    outbox_.send(from, {.kind = Kind::kRejected, .text = rejection->why, .hint = rejection->hint}, true);
    return note(record, "was rejected: " + rejection->why, now);
  }
  if (redirection_.target()) return outbox_.send(from, redirection_.message(), true);
  // A new job meets here: launchers that belonged to no job came first, and no state was left behind.
  if (message.resumes && phase_ == Phase::kGathering && is_new_) {
    return outbox_.send(from, {.kind = Kind::kRejected, .text = "a new job of the same name has started"}, true);
  }
  if (!record.cannot_start.empty()) return fail_start(from, record, now);
  admit(from, message, now);
}

void Coordinator::admit(ConnectionId from, const LauncherMessage& message, SteadyTime now) {
  const JoinRecord& record = *message.join;
  if (!roster_.empty()) {
    std::string warning = admission_.compare_commands(record, roster_.launchers().begin()->second.record);
    if (!warning.empty()) outbox_.warn(std::move(warning));
  }
  is_new_ = is_new_ || !(message.resumes || message.was_spare);
  roster_.add(from, {.record = record, .came = now});
  timing_.joined(now);
  if (message.resumes) {
    // The launcher may know of a round that began after the last leader left its state behind.
    newest_round_ = std::max(newest_round_, message.round);
    if (phase_ == Phase::kGathering) {
      go_on_from({.round = message.round, .run_id = record.run_id}, std::nullopt, now);
    }
    if (failover_ && phase_ == Phase::kDeciding && message.round + 1 >= round_->number()) {
      if (message.round == round_->number()) failover_->voted(from, message.node_rank);
      return round_->readmit(from, message.round);
    }
    // The job goes on without this launcher. It is a newcomer, once its workers are stopped and it says that it is
    // ready.
    roster_.at(from).busy = true;
  }
  if (phase_ == Phase::kGathering) return begin_if_due(now);
  const bool can_join = !round_->is_stopped() && (phase_ == Phase::kDeciding || !round_->some_reported());
  outbox_.send(from, spare_message(from, roster_, *round_, can_join));
  review_ = review_.value_or(now + kHeartbeatsForSpares * times_.heartbeat);
  grow_if_due(now);
  begin_if_due(now);
}

void Coordinator::fail_start(ConnectionId from, const JoinRecord& record, SteadyTime now) {
  outbox_.send(from, {.kind = Kind::kEnded}, true);
  // A job that needs every node waits for no other then; nor does one whose leader cannot start.
  const bool is_needed = record.min_nodes == record.max_nodes && times_.spares == 0;
  if (phase_ != Phase::kGathering || !(is_needed || early_messages_.is_own(record))) {
    return note(record, "cannot take part: " + record.cannot_start, now);
  }
  std::string report = merge_({record.report});
  failed_start_.fail(record, report, record.max_nodes - 1 - roster_.size(), now);
  close({.kind = Kind::kOver, .text = std::move(report)}, false);
}

/// Reports, once, why a node does not take part: to launchers that wait for nodes, else to people here.
void Coordinator::note(const JoinRecord& record, const std::string& what, SteadyTime now) {
  const std::string line = "node " + describe(record) + " " + what;
  if (!admission_.note(line)) return;
  const bool all_wait = phase_ == Phase::kGathering || timing_.is_short();
  if (!all_wait || roster_.empty()) return outbox_.warn(line);
  timing_.told(now);
  outbox_.send(roster_.ids(), {.kind = Kind::kWaiting, .text = who_is_there()});
}

void Coordinator::ready(ConnectionId from, const LauncherMessage& message, SteadyTime now) {
  Roster::Launcher& launcher = roster_.at(from);
  launcher.keeps = message.keeps;
  if (std::exchange(launcher.busy, false)) {
    launcher.record.store_port = message.port;
    grow_if_due(now);
    return begin_if_due(now);
  }
  if (!round_ || !round_->has(from)) return;
  const bool is_next = message.round == round_->number() + 1 || (failover_ && message.round <= round_->number());
  if (!is_next) return;
  if (phase_ == Phase::kClosed) {
    return outbox_.send(from, {.kind = Kind::kEnded, .text = "node " + who_left_ + " has left the job"}, true);
  }
  if (phase_ != Phase::kDeciding || !round_->make_ready(from)) return;
  // The store of each round has another port with c10d, so that no worker of an earlier round finds it.
  if (message.port != 0) launcher.record.store_port = message.port;
  // After a failover members may know of different restarts: the most count.
  if (message.attempt >= attempt_) {
    attempt_ = message.attempt;
    history_ = message.text;
  }
  begin_if_due(now);
}

void Coordinator::begin_if_due(SteadyTime now) {
  if (roster_.empty()) return;
  if (phase_ == Phase::kGathering) {
    if (roster_.size() < roster_.least()) return timing_.cancel_call();
    const std::vector<ConnectionId> ids = roster_.next_members(nullptr);
    if (static_cast<int>(ids.size()) < roster_.least()) return timing_.cancel_call();
    // Spares are launchers beyond the size of the job: their number says whether all are there.
    const bool is_full = times_.spares == 0 ? static_cast<int>(ids.size()) == roster_.most()
                                            : roster_.size() >= roster_.most() + times_.spares;
    if (!timing_.first_call_is_over(is_full, now)) return;
    begin(ids);
    for (const ConnectionId id : roster_.newcomers(&*round_)) {
      outbox_.send(id, spare_message(id, roster_, *round_, true));
    }
    return;
  }
  if (phase_ != Phase::kDeciding || round_->is_stopped() || !round_->all_ready()) return;
  if (failover_ && (failover_->waits(roster_, times_.heartbeat, now) || !failover_->is_carried())) return;
  const std::vector<ConnectionId> ids = roster_.next_members(&*round_);
  if (static_cast<int>(ids.size()) < roster_.least()) return timing_.fall_short(now);
  timing_.end_shortage();
  if (timing_.call_is_over(static_cast<int>(ids.size()) == roster_.most(), now)) begin(ids);
}

void Coordinator::begin(const std::vector<ConnectionId>& ids) {
  // No two rounds have the same number: launchers tell messages of different rounds apart by it.
  const int number = std::max(round_ ? round_->number() + 1 : 0, newest_round_ + 1);
  std::vector<JoinRecord> records;
  for (const ConnectionId id : ids) records.push_back(roster_.at(id).record);
  RankAssignment assignment = assign_ranks(records, run_id_);
  Membership& common = assignment.common;
  run_id_ = common.run_id;
  common.round = number;
  common.attempt = attempt_;
  common.history = history_;
  std::vector<ConnectionId> by_rank;
  std::vector<NodeWithFiles> with_files;
  for (const std::size_t index : assignment.order) {
    if (majority_) redirection_.note_member(records[index].token);
    if (majority_ && early_messages_.is_own(records[index])) name_leader(assignment, static_cast<int>(by_rank.size()));
    by_rank.push_back(ids[index]);
    const bool is_new = !round_ || !round_->has(ids[index]);
    with_files.push_back({records[index].token, records[index].copy_port, records[index].copy_key, is_new,
                          roster_.at(ids[index]).keeps});
  }
  assign_neighbours(with_files, assignment.members);
  if (!common.leader) common.successors.clear();  // the leader is no member: nobody knows whom they would succeed
  const bool known_to_all = is_known_at_once(ids, failover_, round_, rounds_begun_);
  round_ = Round(number, by_rank, round_ ? &*round_ : nullptr, known_to_all, common.successors);
  phase_ = Phase::kRunning;
  failover_.reset();
  timing_.end_shortage();
  timing_.cancel_call();
  ++rounds_begun_;
  if (majority_) {
    majority_->round_began(number, round_->began_with());
    if (known_to_all) majority_->last_round_is_known();
  }
  outbox_.begin(
      std::move(by_rank),
      {.kind = Kind::kBegin, .round = number, .known_to_all = known_to_all, .membership = std::move(assignment.common)},
      std::move(assignment.members));
  // Spares follow their job to the next leader.
  if (!round_->successors().empty()) {
    outbox_.send(roster_.newcomers(&*round_), {.kind = Kind::kSpare, .successors = round_->successors()});
  }
}

/// A round of which some members are done is left alone: the others may be done in a moment, too.
void Coordinator::grow_if_due(SteadyTime now) {
  if (phase_ != Phase::kRunning || !round_->can_be_interrupted() || !roster_.can_grow(*round_)) return;
  const std::vector<ConnectionId> ids = roster_.next_members(&*round_);
  if (!timing_.call_is_over(static_cast<int>(ids.size()) == roster_.most(), now)) return;
  round_->end_early();
  outbox_.send(round_->members(), resize_message(ids, roster_, *round_));
}

void Coordinator::finish_round_if_reported(SteadyTime now) {
  if (phase_ != Phase::kRunning || !round_->all_reported()) return;
  phase_ = Phase::kDeciding;
  timing_.cancel_call();
  outbox_.send(round_->members(), {.kind = Kind::kOver, .round = round_->number(), .text = round_->finish(merge_)});
  begin_if_due(now);  // with spares alone, where nobody else is left
}

void Coordinator::left(ConnectionId who, const std::string& how, SteadyTime now, SteadyTime heard, bool may_run) {
  early_messages_.left(who);
  if (!roster_.has(who)) return;
  const JoinRecord gone = roster_.remove(who).record;
  if (failover_) failover_->left(who);
  if (phase_ == Phase::kGathering) return begin_if_due(now);
  const std::optional<Round::Member> member = round_ ? round_->remove(who) : std::nullopt;
  // With the newcomer the reason for its last call is gone.
  const bool grows = phase_ == Phase::kRunning && round_->can_be_interrupted() && roster_.can_grow(*round_);
  if (phase_ == Phase::kRunning && !grows) timing_.cancel_call();
  const bool is_open = phase_ != Phase::kClosed;
  // A member that has reported is not missed in this round, unless it served the workers' store.
  const bool is_done = phase_ == Phase::kRunning && member && member->reported && member->node_rank != 0;
  if (member && is_open && !is_done) {
    round_->end_early();
    outbox_.send(round_->members(), {.kind = Kind::kLost,
                                     .round = round_->number(),
                                     .text = how + admission_.note_departure(gone, now),
                                     .node = name_of(gone),
                                     .spare = roster_.substitute(*round_),
                                     .steady_ns = nanoseconds(heard)});
  }
  // A member that is known to be dead, or has left, cannot go on with others.
  if (majority_ && may_run && member && is_open) majority_->lost(member->since);
  if (majority_ && !majority_->has_quorum()) return close(no_majority(round_->size(), round_->began_with()), false);
  // Spares that are left alone do not know whether the job is done. They must not begin it anew where it was told to
  // stop, or where its round was over and no member was ready for another one.
  const bool is_called_off =
      member && round_->size() == 0 && (round_->is_stopped() || (phase_ == Phase::kDeciding && !round_->goes_on()));
  if (roster_.empty() || is_called_off) return close({.kind = Kind::kEnded, .text = "all of its nodes are lost"}, true);
  finish_round_if_reported(now);
  begin_if_due(now);
}

/// The node knows the outcome of the job, and no round follows: members that are ready for one are told.
void Coordinator::leave(ConnectionId from, const std::string& end, SteadyTime now) {
  const bool is_over = phase_ == Phase::kDeciding || phase_ == Phase::kClosed;
  const bool is_member = round_ && round_->has(from);
  if (!is_member || !(is_over || round_->member(from).reported)) {
    return left(from, "its launcher has left", now, now);
  }
  if (phase_ != Phase::kClosed) who_left_ = roster_.at(from).record.node;
  roster_.remove(from);
  round_->remove(from);
  if (failover_) failover_->left(from);
  if (!is_over && round_->size() > 0) return finish_round_if_reported(now);
  if (phase_ == Phase::kDeciding) {
    for (const ConnectionId id : round_->members()) {
      if (!round_->member(id).ready) continue;
      outbox_.send(id, {.kind = Kind::kEnded, .text = "node " + who_left_ + " has left the job"}, true);
    }
  }
  close({.kind = Kind::kEnded, .text = end}, true);
}

/// The message is the last one for all launchers that do not stay. Members stay to report the end on their nodes.
void Coordinator::close(const LauncherMessage& message, bool members_stay) {
  phase_ = Phase::kClosed;
  const std::vector<ConnectionId> ids = members_stay && round_ ? roster_.newcomers(&*round_) : roster_.ids();
  outbox_.send(ids, message, true);
  for (const ConnectionId id : ids) {
    roster_.remove(id);
    if (round_) round_->remove(id);
  }
}

void Coordinator::advance(SteadyTime now) {
  failed_start_.advance(now);
  if (review_ && now >= *review_) review_spares(now);
  if (early_messages_.awaits_member() && now >= timing_.opened() + times_.heartbeat) {
    early_messages_.forget_state();
    timing_.told(now);
    admit_waiting(now);
  }
  if (early_messages_.awaits_member()) return;
  if (failover_ && failover_->has_failed(times_.heartbeat, now)) {
    const int votes = failover_->votes();
    const int of = failover_->ballot()->members;
    failover_.reset();
    // Newcomers were invited to a job that does not go on here. They may begin one where they came from.
    redirection_.send_back(no_majority_text(votes, of));
    for (const ConnectionId id : roster_.newcomers(&*round_)) {
      if (roster_.at(id).busy) continue;
      outbox_.send(id, redirection_.back_message(), true);
      roster_.remove(id);
    }
    return close(no_majority(votes, of), false);
  }
  grow_if_due(now);
  begin_if_due(now);
  const bool gathers = phase_ == Phase::kGathering;
  if (!gathers && !(phase_ == Phase::kDeciding && timing_.is_short())) return;
  if (gathers && timing_.join_is_overdue(now)) {
    return close(not_enough(roster_, Kind::kRejected, times_.join, who_is_there()), false);
  }
  if (!gathers && timing_.replacement_is_overdue(now)) {
    return close(not_enough(roster_, Kind::kEnded, times_.replacement, who_is_there()), false);
  }
  if (!timing_.table_is_due(now)) return;
  timing_.told(now);
  outbox_.send(gathers ? roster_.ids() : round_->members(), {.kind = Kind::kWaiting, .text = who_is_there()});
}

void Coordinator::review_spares(SteadyTime now) {
  review_.reset();
  if (phase_ == Phase::kClosed) return;
  if (phase_ != Phase::kRunning || round_->is_stopped() || round_->ends_early()) {
    review_ = now + times_.heartbeat;  // the next round may have a place
    return;
  }
  std::vector<std::pair<ConnectionId, Rejection>> rejected;
  for (const ConnectionId id : roster_.newcomers(&*round_)) {
    const Roster::Launcher& spare = roster_.at(id);
    if (spare.busy) continue;
    // A node that was started again comes before its earlier launcher is known to be dead.
    const SteadyTime due = spare.came + kHeartbeatsForSpares * times_.heartbeat;
    if (now < due) {
      review_ = std::min(review_.value_or(due), due);
    } else if (const auto rejection = rejection_of_spare(spare.record, roster_, *round_)) {
      rejected.emplace_back(id, *rejection);
    }
  }
  for (const auto& [id, rejection] : rejected) {  // not in the loop above, which it would change
    const JoinRecord record = roster_.remove(id).record;
    outbox_.send(id, {.kind = Kind::kRejected, .text = rejection.why, .hint = rejection.hint}, true);
    note(record, "was rejected: " + rejection.why, now);
  }
}

std::optional<SteadyTime> Coordinator::deadline() const {
  std::optional<SteadyTime> next = failed_start_.deadline();
  const auto sooner = [&next](SteadyTime time) { next = std::min(next.value_or(time), time); };
  if (review_ && phase_ != Phase::kClosed) sooner(*review_);
  if (early_messages_.awaits_member()) {
    sooner(timing_.opened() + times_.heartbeat);
  } else if (phase_ == Phase::kGathering) {
    sooner(timing_.first_deadline(!roster_.empty() && roster_.size() >= roster_.least()));
  } else if (phase_ == Phase::kRunning && round_->can_be_interrupted() && roster_.can_grow(*round_)) {
    sooner(timing_.call_end());
  } else if (failover_ && !failover_->is_carried()) {
    sooner(failover_->end_of_ballot(times_.heartbeat));
  } else if (phase_ == Phase::kDeciding && !round_->is_stopped() && !roster_.empty() && round_->all_ready()) {
    const bool waits = failover_ && !failover_->all_are_back(roster_);
    if (timing_.is_short()) {
      sooner(timing_.shortage_deadline());
    } else {
      sooner(waits ? std::max(timing_.call_end(), failover_->end_of_wait(times_.heartbeat)) : timing_.call_end());
    }
  }
  return next;
}

JobState Coordinator::state() const {
  JobState state{.round = round_ ? round_->number() : 0, .attempt = attempt_, .history = history_, .run_id = run_id_};
  for (const auto& [id, launcher] : roster_.launchers()) {
    if (round_ && round_->has(id)) state.members.push_back(launcher.record.token);
  }
  return state;
}

std::optional<RendezvousAddress> Coordinator::standby_of(ConnectionId who) const {
  if (!majority_ || phase_ == Phase::kClosed || !round_ || !round_->has(who)) return std::nullopt;
  const JoinRecord& record = roster_.at(who).record;
  if (record.standby_port == 0) return std::nullopt;
  return RendezvousAddress{record.address, record.standby_port};
}

bool Coordinator::over() const { return phase_ == Phase::kClosed && roster_.empty() && !failed_start_.awaits_nodes(); }

std::string Coordinator::who_is_there() const {
  std::string text = roster_.joined_text();
  const int spares = phase_ == Phase::kGathering ? times_.spares : 0;
  const bool more_may_come = phase_ == Phase::kGathering || phase_ == Phase::kDeciding;
  if (!more_may_come || roster_.empty() || roster_.size() >= roster_.most() + spares) return text;
  return text + roster_.missing_text(spares, hosts_) + admission_.notes_text();
}

}  // namespace lrun::launcher
