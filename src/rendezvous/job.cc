#include "rendezvous/job.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun {
namespace {

using Kind = LauncherMessage::Kind;

/// Nobody outside this machine can be meant by such an endpoint.
StoreReach reach_of(const RendezvousPlan& plan) {
  const bool here = plan.host == "localhost" || plan.host == "127.0.0.1";
  const bool announced = !plan.local_addr.empty() && plan.local_addr != "127.0.0.1";
  return here && !announced ? StoreReach::kLoopback : StoreReach::kNetwork;
}

/// Each node's, once more for those that come again, and strangers.
std::size_t most_launchers(const RendezvousPlan& plan) {
  constexpr std::size_t kStrangers = 64;
  return 2 * static_cast<std::size_t>(plan.max_nodes) + kStrangers;
}

std::unique_ptr<MeetingHolder> hold_meeting(EventLoop& loop, const RendezvousPlan& plan,
                                            MeetingHolder::Options options) {
  if (plan.hosting == RendezvousPlan::Hosting::kNever) return nullptr;
  options.port = static_cast<std::uint16_t>(plan.port);
  options.reach = reach_of(plan);
  options.times = {.join = plan.join_timeout,
                   .replacement = plan.replacement,
                   .last_call = plan.last_call,
                   .heartbeat = plan.heartbeat};
  options.max_launchers = most_launchers(plan);
  try {
    return std::make_unique<MeetingHolder>(loop, options);
  } catch (const std::system_error& error) {
    const bool taken = error.code().value() == EADDRINUSE;
    if (!taken || plan.hosting == RendezvousPlan::Hosting::kMust) throw;
    return nullptr;  // another launcher on this machine was first
  }
}

}  // namespace

Job::Job(EventLoop& loop, const RendezvousPlan& plan, JoinRecord record, std::size_t max_store_connections,
         const std::string& secret)
    : loop_(loop),
      reach_(reach_of(plan)),
      max_store_connections_(max_store_connections),
      holder_(hold_meeting(loop, plan,
                           {.max_store_connections = max_store_connections,
                            .host = record.token,
                            .secret = secret,
                            .turned_away =
                                [this](const std::string& line) {
                                  if (events_.turned_away) events_.turned_away(line);
                                }})),
      store_is_meeting_(holder_ && plan.workers_use_endpoint),
      only_keeps_port_(plan.rank_0_hosts_store),
      is_open_to_network_(holder_ && reach_ == StoreReach::kNetwork) {
  if (!store_is_meeting_) open_store();
  record.store_port = store_ ? store_->port() : holder_->server().port();
  if (holder_ && plan.workers_use_endpoint && !record.node_rank) record.node_rank = 0;
  LauncherLink::Options options{.host = holder_ ? "127.0.0.1" : plan.host,
                                .port = holder_ ? holder_->server().port() : static_cast<std::uint16_t>(plan.port),
                                .record = std::move(record),
                                .connect = plan.connect_timeout,
                                .heartbeat = plan.heartbeat,
                                .secret = secret};
  link_ = std::make_unique<LauncherLink>(
      loop, std::move(options),
      LauncherLink::Events{
          .received = [this](const LauncherMessage& message) { received(message); },
          .broken = [this](const std::string& why, const std::string& hint) { link_broken(why, hint); }});
}

/// With a port that the user fixed the socket stays, and only what is in the store goes.
void Job::open_store() {
  if (store_is_meeting_) return holder_->server().reset();
  store_ = std::make_unique<StoreServer>(
      loop_, StoreServerOptions{
                 .reach = reach_, .only_keeps_port = only_keeps_port_, .max_connections = max_store_connections_});
}

void Job::ready(int attempt, const std::string& history) {
  open_store();
  const StoreServer& store = store_is_meeting_ ? holder_->server() : *store_;
  link_->send({.kind = Kind::kReady,
               .round = round_ + 1,
               .text = history.substr(0, kMostReportBytes),
               .attempt = attempt,
               .port = store.port()});
}

void Job::say(LauncherMessage::Kind kind, int round, const std::string& text) {
  link_->send({.kind = kind, .round = round, .text = text.substr(0, kMostReportBytes)});
}

void Job::set_events(Events events) {
  events_ = std::move(events);
  if (!std::exchange(hands_over_, false) || waiting_.empty()) return;
  deliver_ = loop_.after(Duration::zero(), [this] {
    for (const LauncherMessage& message : std::exchange(waiting_, {})) received(message);
  });
}

void Job::received(const LauncherMessage& message) {
  if (ended_) return;
  if (hands_over_ || deliver_.armed()) return waiting_.push_back(message);
  switch (message.kind) {
    case Kind::kBegin:
      round_ = message.membership->round;
      hands_over_ = !std::exchange(begun_, true);
      link_->settle();
      return events_.begun(*message.membership);
    case Kind::kWaiting:
      return events_.waiting(message.text);
    case Kind::kRefused:
      ended_ = true;
      link_->close();
      return begun_ ? events_.lost("", message.text, 0) : events_.failed(message.text, "");
    case Kind::kSpare:
      return events_.spare(message.text);
    case Kind::kEnded:
      ended_ = true;
      link_->close();
      return events_.ended(message.text);
    case Kind::kResize:
      if (message.round == round_) events_.resize(message.node, message.text);
      return;
    case Kind::kStop:
      if (message.round == round_) events_.stop(message.text);
      return;
    case Kind::kLost:
      return events_.lost(message.node, message.text, message.steady_ns);
    case Kind::kOver:
      if (message.round == round_) events_.over(message.payloads);
      return;
    default:
      return;
  }
}

void Job::link_broken(const std::string& why, const std::string& hint) {
  if (std::exchange(ended_, true)) return;
  begun_ ? events_.lost("", why, 0) : events_.failed(why, hint);
}

void Job::end_with(Kind kind, const std::string& text) {
  if (std::exchange(ended_, true)) return;
  say(kind, round_, text);
  link_->close();
}

void Job::leave(const std::string& text, Duration limit, std::function<void()> left) {
  bye(text);
  left_ = std::move(left);
  const auto done = [this] {
    leave_limit_.cancel();
    if (left_) std::exchange(left_, nullptr)();
  };
  leave_limit_ = loop_.after(holder_ ? limit : Duration::zero(), done);
  if (holder_) holder_->on_over(done);
}

StoreServer* Job::store_for(const Membership& membership) {
  if (membership.node_rank != 0) {
    store_.reset();
    return nullptr;
  }
  return store_ ? store_.get() : &holder_->server();
}

}  // namespace lrun
