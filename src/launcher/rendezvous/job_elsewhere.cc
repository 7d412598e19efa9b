// A job whose meeting is held away from its endpoint, and what a launcher does that comes to the endpoint.
#include <utility>

#include "rendezvous/job.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

/// For who holds the meeting at the place to which we were sent.
constexpr int kHeartbeatsToAnswer = 2;
/// The endpoint may send us to the same place again at once.
constexpr Duration kPauseElsewhere(200);

}  // namespace

/// The launcher that held the meeting at the endpoint may be started again, and would begin a second job there.
void Job::look_at_endpoint() {
  if (owns_endpoint_) return;
  watch_ = std::make_unique<EndpointWatch>(
      loop_,
      LauncherLink::Options{.host = plan_.host,
                            .port = static_cast<std::uint16_t>(plan_.port),
                            .record = record_,
                            .heartbeat = plan_.heartbeat,
                            .secret = secret_},
      membership_.round,
      [this](const LauncherMessage& answer, const std::string& address) { endpoint_answered(answer, address); });
}

/// Whoever has begun stays: where we have not, all of ours go to the endpoint.
void Job::endpoint_answered(const LauncherMessage& answer, const std::string& address) {
  if (answer.kind != Kind::kHasBegun || ended_ || !holder_) return;
  if (!holder_->has_begun()) {
    next_place_ = loop_.after(Duration::zero(), [this, address] {
      if (holder_) holder_->redirect_to(RendezvousAddress{address, plan_.port});
    });
  } else if (events_.not_alone) {
    events_.not_alone("another job of this name has begun at " + address + " port " + std::to_string(plan_.port) +
                      ", where this one began: both go on, and neither knows of the other's work");
  }
}

/// A node of a round that runs is where its job is. Called by the link, which another one replaces.
void Job::sent_on(const LauncherMessage& message) {
  if (begun_ && !is_adrift_) return;
  link_->close();
  // What is beside who says so is reached where that is.
  place_ = {is_loopback_address(message.address) ? link_->leader_address() : message.address, message.port};
  if (events_.sent_on && std::exchange(told_place_, place_) != place_) {
    events_.sent_on("this job runs already: this node joins it at " + place_->address + " port " +
                    std::to_string(place_->port));
  }
  next_place_ = loop_.after(Duration::zero(), [this] {
    if (ended_) return;
    end_search();
    settled_ = false;  // our vote was given
    if (holder_) give_meeting_away();
    go_to_place();
  });
}

void Job::go_to_place() { open_link(place_->address, place_->port, kHeartbeatsToAnswer * plan_.heartbeat); }

/// What has met here stays to send others on, and we join the job as its other nodes do.
void Job::give_meeting_away() {
  signpost_ = std::move(holder_);
  open_standby();
  if (rank_is_by_default_) record_.node_rank.reset();
  if (!std::exchange(store_is_meeting_, false)) return;
  open_store();
  record_.store_port = store_->port();
}

/// The place to which we were sent may be of no use any more: then the endpoint knows better.
bool Job::may_look_again() const { return !ended_ && !begun_ && line_.empty() && place_; }

/// Whoever goes on with the job after all invites us again.
void Job::sent_back(const std::string& why) {
  link_->close();
  look_again(why, true);
}

/// Called by the link, which another one replaces. Where the endpoint is ours and nobody is left at the place, it is
/// as if this launcher were started now.
void Job::look_again(const std::string& why, bool came_to_nothing) {
  const RendezvousAddress before = *place_;
  is_spare_ = false;
  if (!owns_endpoint_) {
    place_.reset();
    next_place_ = loop_.after(kPauseElsewhere, [this] { open_link(plan_.host, plan_.port, plan_.connect_timeout); });
  } else if (*signpost_->redirect() != before) {
    place_ = signpost_->redirect();
    next_place_ = loop_.after(Duration::zero(), [this] { go_to_place(); });
  } else if (came_to_nothing) {
    next_place_ = loop_.after(Duration::zero(), [this, why] { meet_here(why); });
  } else {
    const auto port = static_cast<std::uint16_t>(before.port);
    probe_.ask(before.address, port, plan_.heartbeat / 2, [this, why, before](bool refused) {
      if (ended_) return;
      if (*signpost_->redirect() != before) return look_again(why, false);
      if (refused) return meet_here(why);
      ended_ = true;
      events_.failed(why, "");
    });
  }
}

/// What was given away is ours again.
void Job::meet_here(const std::string& why) {
  if (ended_) return;
  if (events_.sent_on) {
    events_.sent_on("nothing came of the meeting at " + place_->address + " port " + std::to_string(place_->port) +
                    ": " + why + "; this node meets the others at the job's endpoint again");
  }
  place_.reset();
  told_place_.reset();
  holder_ = std::move(signpost_);
  holder_->redirect_to(std::nullopt);
  standby_.reset();
  record_.standby_port = 0;
  if (rank_is_by_default_) record_.node_rank = 0;
  store_is_meeting_ = plan_.workers_use_endpoint;
  open_store();
  if (store_is_meeting_) store_.reset();
  record_.store_port = store_ ? store_->port() : holder_->server().port();
  open_link(own_meeting(), holder_->server().port(), plan_.connect_timeout);
}

}  // namespace lrun::launcher
