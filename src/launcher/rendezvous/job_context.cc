// In: messages of the leader, and the link to it that is made or breaks. Out: JobEvents, and the state of the job.
// Called by Job, by LauncherLink through callbacks, and by the states.
#include "rendezvous/job_context.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

/// Until Job::set_events().
class NoEvents : public JobEvents {};

JobEvents& no_events() {
  static NoEvents none;
  return none;
}

}  // namespace

JobContext::JobContext(EventLoop& event_loop, Options options)
    : loop(event_loop),
      plan(options.plan),
      merge(options.merge),
      secret(options.secret),
      servers(event_loop, {.plan = options.plan,
                           .record = std::move(options.record),
                           .merge = options.merge,
                           .max_store_connections = options.max_store_connections,
                           .secret = options.secret,
                           .rejected = [this](const std::string& line) { events->rejected(line); },
                           .begun =
                               [this](JobState begun) {
                                 begun.leader = servers.record().token;
                                 election->publish(begun);
                               }}),
      events(&no_events()),
      state(std::in_place_type<Linked>, *this) {}

void JobContext::open_link(const std::string& host, int port, Duration timeout, std::optional<int> vote) {
  LauncherLink::Options options{.host = host,
                                .port = static_cast<std::uint16_t>(port),
                                .record = servers.record(),
                                .connect = timeout,
                                .name = plan.name_timeout,
                                .is_up = plan.is_up && host == plan.host && port == plan.port,
                                .heartbeat = plan.heartbeat,
                                .secret = secret,
                                .port_option = plan.port_option,
                                .host_option = plan.host_from};
  if (part.has_begun()) options.resumes = part.round();
  options.was_spare = part.is_spare;
  // A vote is given once: one attempt has all of the time.
  options.vote = vote;
  if (vote) options.attempt = timeout;
  if (part.is_spare) options.attempt = plan.heartbeat;  // there may be several that do not answer
  link = std::make_unique<LauncherLink>(
      loop, std::move(options),
      LauncherLink::Events{
          .received = [this](const LauncherMessage& message) { received(message); },
          .broken = [this](const std::string& why, const std::string& hint) { link_broken(why, hint); },
          .joined = [this] { link_joined(); },
          .connection =
              [this](int connection) {
                if (connection_changed) connection_changed(connection);
              }});
}

void JobContext::open_first_link() {
  const RendezvousServer* const ours = servers.rendezvous();
  open_link(ours != nullptr ? servers.own_address() : plan.host,
            ours != nullptr ? servers.rendezvous()->server().port() : plan.port, plan.connect_timeout);
}

void JobContext::send(Kind kind, const std::string& text) {
  if (link) link->send({.kind = kind, .round = part.round(), .text = text.substr(0, kMostReportBytes)});
}

/// The name of the asker is the leader's: an answer that comes when another one leads is for nobody.
void JobContext::answer(const LauncherMessage& question) {
  if (!questions.asked) return;
  questions.asked(question.text, [this, lives = std::weak_ptr(lives_), to = link.get(),
                                  asker = question.asker](const std::string& text) {
    if (lives.expired() || !link || link.get() != to) return;
    link->send({.kind = Kind::kAnswer, .text = text.substr(0, kMostReportBytes), .asker = asker});
  });
}

void JobContext::link_joined() {
  std::visit([](auto& current) { current.link_joined(); }, state);
  if (is_over()) return;
  servers.redirect_to({link->server_address(), link->port()});
  // This leader may be another one than before, and has to know it, too.
  if (part.ready) link->send(*part.ready);
}

void JobContext::link_broken(const std::string& why, const std::string& hint) {
  std::visit([&](auto& current) { current.link_broken(why, hint); }, state);
}

void JobContext::set_events(JobEvents& new_events) {
  events = &new_events;
  if (!std::exchange(holds_back_, false) || held_back_.empty()) return;
  deliver_ = loop.after(Duration::zero(), [this] {
    for (const LauncherMessage& message : std::exchange(held_back_, {})) received(message);
  });
}

void JobContext::received(const LauncherMessage& message) {
  if (is_over()) return;
  if (holds_back_ || deliver_.armed()) return held_back_.push_back(message);
  const bool is_of_round = message.round == part.round();
  switch (message.kind) {
    case Kind::kBegin:
      return begin(message);
    case Kind::kWaiting:
      return events->waiting(message.text);
    case Kind::kAsk:
      return answer(message);
    case Kind::kAnswer:
      if (questions.answered) questions.answered(message.text);
      return;
    case Kind::kRejected:
      return rejected(message);
    case Kind::kSpare:
      return wait_as_spare(message);
    case Kind::kRedirect:
      return Redirected::redirected(*this, message);
    case Kind::kNoRendezvous:
      if (auto* const redirected = std::get_if<Redirected>(&state); redirected && redirected->sent_back(message.text)) {
        return;
      }
      [[fallthrough]];
    case Kind::kEnded:
      watch.reset();
      link->close();
      return end(message.text, true);
    case Kind::kResize:
      if (is_of_round) events->resized(message.node, message.text);
      return;
    case Kind::kStop:
      if (is_of_round) events->stop(message.text);
      return;
    case Kind::kLost:
      return events->lost(message.node, message.text, message.steady_ns, message.spare);
    case Kind::kKnownToAll:
      part.known_to_all = part.known_to_all || is_of_round;
      return;
    case Kind::kOver:
      if (!is_of_round) return;
      part.report.reset();
      return events->over(message.text);
    default:
      return;
  }
}

void JobContext::begin(const LauncherMessage& message) {
  // The events of the wait for the job are replaced by those of the run before anything else is reported.
  holds_back_ = !part.has_begun();
  part.begin(message);
  servers.take_run_id(part.membership->run_id);
  told_target.reset();
  link->stay_closed();
  // Where there are no successors it does not matter which round a member knows.
  if (!part.known_to_all && part.membership->leader) send(Kind::kBegun);
  enter<Linked>();
  events->begun(*message.membership);
}

void JobContext::rejected(const LauncherMessage& message) {
  link->close();
  if (election && part.has_begun() && !part.is_leaderless()) {
    return Campaigning::leader_lost(*this, message.text, "");  // there may be another leader
  }
  if (part.is_leaderless()) return end(message.text);
  give_up(message.text, message.hint);
}

void JobContext::wait_as_spare(const LauncherMessage& message) {
  part.is_spare = !part.has_begun();
  if (part.is_spare && !message.successors.empty()) {  // a leader after a failover names none before its first round
    link->stay_closed();
    std::vector<Successor> line = message.successors;
    line.insert(line.begin(), {.address = link->server_address(), .standby_port = link->port()});
    enter<WaitingAsSpare>(std::move(line));
  }
  if (!message.text.empty()) events->spare(message.text);
}

void JobContext::give_up(const std::string& why, const std::string& hint) {
  // Copies: both may belong to the state that ends here.
  const auto report = [this, reason = why, advice = hint] {
    part.has_begun() ? events->lost("", reason, 0, "") : events->failed(reason, advice);
  };
  enter<Over>();
  report();
}

void JobContext::end(const std::string& why, bool by_leader) {
  // A copy: it may belong to the state that ends here.
  const auto report = [this, reason = why, by_leader] { events->ended(reason, by_leader); };
  enter<Over>();
  report();
}

void JobContext::lose_leader(const std::string& node, const std::string& how) {
  part.lost_clock = link->clock_offset();
  events->leaderless("the leader on node " + node + " is lost: " + how, link->heard_ns());
  if (part.report) report_alone();
}

void JobContext::report_alone() {
  judge_ = loop.after(Duration::zero(), [this] {
    if (is_over() || !part.report) return;
    std::vector<std::string> reports{*std::exchange(part.report, std::nullopt)};
    if (part.membership->num_nodes > 1) reports.emplace_back();  // the others' are missing
    events->over(merge(reports));
  });
}

void JobContext::watch_endpoint() {
  if (servers.owns_endpoint()) return;
  watch = std::make_unique<EndpointWatch>(
      loop,
      LauncherLink::Options{.host = plan.host,
                            .port = static_cast<std::uint16_t>(plan.port),
                            .record = servers.record(),
                            .heartbeat = plan.heartbeat,
                            .secret = secret},
      part.round(),
      [this](const LauncherMessage& answer, const std::string& address) { endpoint_answered(answer, address); });
}

void JobContext::endpoint_answered(const LauncherMessage& answer, const std::string& address) {
  if (answer.kind != Kind::kHasBegun || is_over() || servers.rendezvous() == nullptr) return;
  if (servers.rendezvous()->has_begun()) {
    return events->second_job("another job of this name has started at " + address + " port " +
                              std::to_string(plan.port) +
                              ", where this one started: both run, and neither knows of the other");
  }
  // A job that has begun stays where it is; this one has not, and gives way. Later: the watch is still at work.
  give_way_ = loop.after(Duration::zero(), [this, address] {
    if (servers.rendezvous() != nullptr) servers.rendezvous()->redirect_to(RendezvousAddress{address, plan.port});
  });
}

std::string JobContext::last_error() const {
  if (link && !link->last_error().empty()) return link->last_error();
  return election ? election->last_error() : std::string();
}

void JobContext::finish_soon() {
  if (!finished) return;
  finish = loop.after(Duration::zero(), [this] { std::exchange(finished, nullptr)(); });
}

}  // namespace lrun::launcher
