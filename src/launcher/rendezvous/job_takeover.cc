// A job whose meeting is taken over by one of its members when the launcher that held it is lost, without an etcd.
#include <algorithm>
#include <utility>

#include "rendezvous/job.h"
#include "store/listening_socket.h"

namespace lrun::launcher {
namespace {

/// All members notice the loss of their holder within a part of a heartbeat.
constexpr int kHeartbeatsToLook = 6;
constexpr Duration kPauseOfTakeover(50);

}  // namespace

/// Of a round of which some members do not know yet they could go on from the one before, without us.
bool Job::may_succeed() const {
  return !ended_ && begun_ && (settled_ || succession_) && membership_.leader && !holder_;
}

bool Job::has_successors() const {
  return holder_ && !election_ && !ended_ && settled_ && membership_.leader && membership_.num_nodes > 1;
}

/// What we say now would come to them before they see that we are gone, and be taken for the end of the job.
void Job::vanish() {
  if (!has_successors()) return;
  ended_ = true;
  watch_.reset();
  if (signpost_) signpost_->vanish();
  vanished_ = std::move(holder_);
  vanished_->vanish();
  link_->close();
  if (succession_) end_succession();
}

/// Called by the link, which another one replaces.
void Job::find_successor(const std::string& why) {
  const bool was_closed = link_->was_closed();
  if (!is_adrift_) {
    where_ = membership_.leader_name;
    tell_adrift(why);
    if (ended_) return;
  }
  succession_step_ = loop_.after(Duration::zero(), [this, was_closed] {
    if (ended_) return;
    if (!succession_) {
      limit_search(kHeartbeatsToLook * plan_.heartbeat);
      succession_.emplace(membership_);
      return follow(succession_->leader_lost(was_closed));
    }
    follow(succession_->has_voted() ? succession_->successor_lost(was_closed) : succession_->out_of_reach());
  });
}

void Job::limit_search(Duration limit) {
  search_limit_ =
      loop_.after(limit, [this, limit] { follow({.why = "nobody holds a meeting after " + format_duration(limit)}); });
}

void Job::tell_adrift(const std::string& how) {
  is_adrift_ = true;
  lost_offset_ = link_->clock_offset();
  if (events_.adrift) events_.adrift("the meeting on node " + where_ + " is lost: " + how, link_->heard_ns());
  if (report_) judge_alone();
}

void Job::follow(const SuccessorSearch::Step& step) {
  using Step = SuccessorSearch::Step;
  switch (step.kind) {
    case Step::Kind::kProbe:
      return probe_.ask(link_->leader_address(), link_->port(), plan_.heartbeat / 2,
                        [this](bool refused) { follow(succession_->probed(refused)); });
    case Step::Kind::kJoin:
      return open_link(step.other.address, step.other.standby_port, plan_.heartbeat);
    case Step::Kind::kLead:
      return hold_as_successor(step.ballot);
    case Step::Kind::kGiveUp:
      ended_ = true;
      if (link_) link_->close();
      end_succession();
      return events_.ended(step.why);
  }
}

void Job::hold_as_successor(const Ballot& ballot) {
  hold_meeting(record_.standby_port, standby_.release());
  holder_->resume(
      {.round = membership_.round, .attempt = membership_.attempt, .history = membership_.history, .leader = {}},
      ballot);
  open_link(own_meeting(), record_.standby_port, plan_.heartbeat);
  look_at_endpoint();
}

void Job::open_standby() {
  standby_ = open_listening_socket(reach_, 0, own_address_);
  record_.standby_port = port_of_socket(standby_.get());
}

void Job::wait_as_spare(const LauncherMessage& message) {
  is_spare_ = !begun_;
  if (is_spare_ && !message.successors.empty()) {  // one that has taken the meeting over tells none before its round
    link_->settle();
    line_ = message.successors;
    line_.insert(line_.begin(), {.address = link_->leader_address(), .standby_port = link_->port()});
  }
  if (!message.text.empty()) events_.spare(message.text);
}

bool Job::may_follow() const { return !ended_ && is_spare_ && !line_.empty(); }

/// A spare has no vote: whoever holds the meeting takes it in. Those who do not hold one do not answer. Called by the
/// link, which another one replaces.
void Job::follow_successors(const std::string& why) {
  if (!search_limit_.armed()) {
    if (events_.sent_on) {
      events_.sent_on("the meeting at " + link_->leader_address() + " is lost: " + why +
                      "; looking for the node that holds the next one");
    }
    limit_search((kHeartbeatsToLook + 2) * plan_.heartbeat);  // the members begin that much earlier or later
  }
  next_place_ = loop_.after(turned_to_ == 0 ? Duration::zero() : kPauseOfTakeover, [this] {
    const Successor& next = line_.at(turned_to_++ % line_.size());
    open_link(next.address, next.standby_port, Duration::zero());
  });
}

void Job::end_search() {
  search_limit_.cancel();
  succession_step_.cancel();
  probe_.cancel();
  watch_.reset();
  succession_.reset();
}

/// The others turn to the next one where it was our meeting that no round has begun in.
void Job::end_succession() {
  end_search();
  next_place_.cancel();
  holder_.reset();
}

}  // namespace lrun::launcher
