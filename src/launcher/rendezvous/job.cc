#include "rendezvous/job.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "rendezvous/bind_address.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

}  // namespace

Job::Job(EventLoop& loop, const RendezvousPlan& plan, JoinRecord record, GatherReports gather,
         std::size_t max_store_connections, std::string secret, const std::string& etcd_user)
    : loop_(loop),
      plan_(plan),
      gather_(std::move(gather)),
      secret_(std::move(secret)),
      reach_(reach_of(plan)),
      own_address_(bind_address_of(plan)),
      max_store_connections_(max_store_connections),
      record_(std::move(record)),
      probe_(loop) {
  hold_meeting_if_ours();
  owns_endpoint_ = holder_ != nullptr;
  if (!holder_ && plan_.etcd.empty() && plan_.max_nodes > 1) open_standby();
  store_is_meeting_ = holder_ && plan_.workers_use_endpoint;
  is_open_to_network_ = (holder_ || !plan_.etcd.empty()) && reach_ == StoreReach::kNetwork;
  if (record_.address.empty()) record_.address = own_address_;
  if (!store_is_meeting_) open_store();
  record_.store_port = store_ ? store_->port() : holder_->server().port();
  rank_is_by_default_ = holder_ && plan_.workers_use_endpoint && !record_.node_rank;
  if (rank_is_by_default_) record_.node_rank = 0;
  if (!plan_.etcd.empty()) {
    look_in_etcd(etcd_user);
    return;
  }
  open_link(holder_ ? own_meeting() : plan_.host, holder_ ? holder_->server().port() : plan_.port,
            plan_.connect_timeout);
}

void Job::hold_meeting_if_ours() {
  if (plan_.hosting == RendezvousPlan::Hosting::kNever) return;
  try {
    hold_meeting(plan_.port, plan_.listener);
  } catch (const std::system_error& error) {
    const bool taken = error.code().value() == EADDRINUSE;
    if (!taken || plan_.hosting == RendezvousPlan::Hosting::kMust) throw;
    // another launcher on this machine was first
  }
}

std::size_t Job::most_launchers(const RendezvousPlan& plan) {
  constexpr std::size_t kStrangers = 64;
  // Each node's, and once more for those that come again.
  return 2 * static_cast<std::size_t>(plan.max_nodes + plan.spares) + kStrangers;
}

void Job::hold_meeting(int port, int listener) {
  // Those of a lost holder look for this meeting only now.
  const Duration for_spares = succession_ && plan_.spares > 0 ? RendezvousTimes().for_spares : Duration::zero();
  RendezvousServer::Options options{.port = static_cast<std::uint16_t>(port),
                                    .listener = listener,
                                    .reach = reach_,
                                    .address = own_address_,
                                    .times = {.join = plan_.join_timeout,
                                              .replacement = std::max(plan_.replacement, for_spares),
                                              .last_call = plan_.last_call,
                                              .heartbeat = plan_.heartbeat,
                                              .spares = plan_.spares},
                                    .gather = gather_,
                                    .max_store_connections = max_store_connections_,
                                    .serves_horovod = plan_.serves_horovod,
                                    .max_launchers = most_launchers(plan_),
                                    .host = record_.token,
                                    .secret = secret_,
                                    .guards_majority = election_ == nullptr,
                                    .turned_away = [this](const std::string& line) {
                                      if (events_.turned_away) events_.turned_away(line);
                                    }};
  if (election_) {
    options.begun = [this](JobState state) {
      state.leader = record_.token;
      election_->keep(state);
    };
  }
  holder_ = std::make_unique<RendezvousServer>(loop_, options);
}

void Job::open_link(const std::string& host, int port, Duration patience) {
  LauncherLink::Options options{.host = host,
                                .port = static_cast<std::uint16_t>(port),
                                .record = record_,
                                .connect = patience,
                                .heartbeat = plan_.heartbeat,
                                .secret = secret_,
                                .port_option = plan_.port_option};
  if (begun_) options.resumes = round_;
  options.was_spare = is_spare_;
  if (succession_) {
    options.vote = membership_.self.node_rank;
    options.attempt = patience;
  }
  if (is_spare_) options.attempt = plan_.heartbeat;  // there may be several that do not answer
  link_ = std::make_unique<LauncherLink>(
      loop_, std::move(options),
      LauncherLink::Events{
          .received = [this](const LauncherMessage& message) { received(message); },
          .broken = [this](const std::string& why, const std::string& hint) { link_broken(why, hint); },
          .joined = [this] { linked(); },
          .connection =
              [this](int connection) {
                if (connection_changed_) connection_changed_(connection);
              }});
}

/// What the meeting has to know of us where it is another than before.
void Job::linked() {
  search_limit_.cancel();
  if (goodbye_) return say_goodbye();
  if (succession_) succession_->joined();
  turned_to_ = 0;
  if (signpost_) signpost_->redirect_to(RendezvousAddress{link_->leader_address(), link_->port()});
  if (ready_ && link_) link_->send(*ready_);
}

std::string Job::trouble() const {
  if (link_ && !link_->trouble().empty()) return link_->trouble();
  return election_ ? election_->trouble() : std::string();
}

/// With a port that the user fixed the socket stays, and only what is in the store goes.
void Job::open_store() {
  if (store_is_meeting_) return holder_->server().reset();
  store_ = std::make_unique<StoreServer>(loop_, StoreServerOptions{.reach = reach_,
                                                                   .address = own_address_,
                                                                   .only_keeps_port = plan_.rank_0_hosts_store,
                                                                   .max_connections = max_store_connections_,
                                                                   .serves_horovod = plan_.serves_horovod});
}

void Job::ready(int attempt, const std::string& history) {
  open_store();
  const StoreServer& store = store_is_meeting_ ? holder_->server() : *store_;
  record_.store_port = store.port();
  ready_ = {.kind = Kind::kReady,
            .round = round_ + 1,
            .text = history.substr(0, kMostReportBytes),
            .attempt = attempt,
            .port = store.port()};
  if (link_) link_->send(*ready_);
}

void Job::report(const std::string& text) {
  report_ = text;
  is_adrift_ ? judge_alone() : say(Kind::kReport, round_, text);
}

void Job::say(LauncherMessage::Kind kind, int round, const std::string& text) {
  if (!link_) return;
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
      membership_ = *message.membership;
      settled_ = message.settled;
      succession_.reset();
      is_adrift_ = is_spare_ = false;
      place_.reset();
      told_place_.reset();
      line_.clear();
      ready_.reset();
      report_.reset();
      hands_over_ = !std::exchange(begun_, true);
      link_->settle();
      if (!settled_ && membership_.leader) say(Kind::kBegun, round_);
      return events_.begun(*message.membership);
    case Kind::kWaiting:
      return events_.waiting(message.text);
    case Kind::kRejected:
      link_->close();
      if (election_ && begun_ && !is_adrift_) return meeting_lost(message.text, "");  // there may be another place
      ended_ = true;
      if (is_adrift_) return events_.ended(message.text);
      return begun_ ? events_.lost("", message.text, 0, "") : events_.failed(message.text, message.hint);
    case Kind::kSpare:
      wait_as_spare(message);
      return;
    case Kind::kRedirect:
      return sent_on(message);
    case Kind::kNoRendezvous:
      if (may_look_again()) return sent_back(message.text);
      [[fallthrough]];
    case Kind::kEnded:
      ended_ = true;
      watch_.reset();
      link_->close();
      return events_.ended(message.text);
    case Kind::kResize:
      if (message.round == round_) events_.resize(message.node, message.text);
      return;
    case Kind::kStop:
      if (message.round == round_) events_.stop(message.text);
      return;
    case Kind::kLost:
      return events_.lost(message.node, message.text, message.steady_ns, message.spare);
    case Kind::kSettled:
      settled_ = settled_ || message.round == round_;
      return;
    case Kind::kOver:
      if (message.round != round_) return;
      report_.reset();
      return events_.over(message.text);
    default:
      return;
  }
}

void Job::link_broken(const std::string& why, const std::string& hint) {
  if (goodbye_) return link_broken_at_goodbye();
  if (election_ && !ended_) return meeting_lost(why, hint);
  if (may_succeed()) return find_successor(why);
  if (may_follow()) return follow_successors(why);
  if (may_look_again()) return look_again(why, false);
  if (std::exchange(ended_, true)) return;
  if (begun_) return events_.lost("", why, 0, "");
  const bool has_no_server = plan_.leaves_endpoint && (hint.empty() || link_->met_lone_job());
  events_.failed(why, has_no_server ? kServeEndpointHint : hint);
}

void Job::end_with(Kind kind, const std::string& text) {
  if (std::exchange(ended_, true)) return;
  if (kind == Kind::kLeave && election_ && is_adrift_ && !joined()) return keep_goodbye(text);
  say(kind, round_, text);
  if (link_) link_->close();
  if (election_ && !election_->holds()) stop_looking();
  watch_.reset();
  if (succession_) end_succession();
}

void Job::leave(const std::string& text, Duration limit, std::function<void()> left) {
  bye(text);
  left_ = std::move(left);
  const auto done = [this] {
    leave_limit_.cancel();
    if (left_) std::exchange(left_, nullptr)();
  };
  if (goodbye_ && !election_->holds()) return;  // for a while, as keep_goodbye() has it
  leave_limit_ = loop_.after(holder_ ? limit : Duration::zero(), done);
  if (!holder_) return;
  holder_->on_over([this, outcome = text.substr(0, kMostReportBytes), done] {
    election_ ? election_->release(outcome, done) : done();
  });
}

StoreServer* Job::store_for(const Membership& membership) {
  if (membership.self.node_rank != 0) {
    store_.reset();
    return nullptr;
  }
  return store_ ? store_.get() : &holder_->server();
}

}  // namespace lrun::launcher
