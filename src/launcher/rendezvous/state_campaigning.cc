// In: the leader that EtcdElection finds, or that this launcher is elected. Out: a link to the leader, and the
// rendezvous that is served here. Entered at the start of a job that has an etcd, and when its leader is lost.
#include "rendezvous/state_campaigning.h"

#include <algorithm>

#include "rendezvous/job_context.h"

namespace lrun::launcher {
namespace {

constexpr Duration kFirstContact(2000);

EtcdClient::Options etcd_options(const RendezvousPlan& plan, const std::string& user, Duration lease) {
  EtcdClient::Options options;
  for (const Endpoint& endpoint : plan.etcd) {
    options.endpoints.push_back({endpoint.host, static_cast<std::uint16_t>(endpoint.port.value_or(0))});
  }
  options.user = user.substr(0, user.find(':'));
  options.password = user.substr(std::min(user.size(), options.user.size() + 1));
  options.start = plan.etcd_start;
  if (const auto& tls = plan.etcd_tls) {
    options.tls = TlsFiles{.authorities = tls->authorities, .certificate = tls->certificate, .key = tls->key};
  }
  options.attempt = std::max(lease / EtcdElection::kAttemptsPerLease, EtcdElection::kShortestAttempt);
  return options;
}

}  // namespace

Campaigning::Campaigning(JobContext& context) : context_(context) {
  // A launcher that belongs to no job yet waits for etcd only, and as long as its plan says.
  if (!context.part.has_begun() && !context.part.is_spare) return;
  const Duration timeout = context.plan.replacement;
  limit_ = context.loop.after(timeout, [&context, timeout] {
    failed(context, "no leader was found within " + format_duration(timeout) + ": " + context.last_error(), "");
  });
}

std::unique_ptr<EtcdElection> Campaigning::make_election(JobContext& context, const std::string& etcd_user) {
  const RendezvousPlan& plan = context.plan;
  const JoinRecord& own = context.servers.record();
  const Duration lease = std::max(plan.heartbeat, EtcdElection::kShortestLease);
  return std::make_unique<EtcdElection>(
      context.loop,
      EtcdElection::Options{.etcd = etcd_options(plan, etcd_user, lease),
                            .folder = plan.etcd_folder,
                            .self = {.token = own.token, .node = own.node, .address = own.address},
                            .lease = lease,
                            .timeout = plan.connect_timeout},
      EtcdElection::Events{
          .open =
              [&context](const std::string&) {
                context.servers.lead();
                return context.servers.rendezvous()->server().port();
              },
          .close = [&context] { context.servers.stop_leading(); },
          .found = [&context](const LeaderRecord& leader, bool is_self,
                              const std::optional<JobState>& state) { found(context, leader, is_self, state); },
          .deposed =
              [&context](const std::string&) {
                // The others must not find us any more. Messages on the way are lost, and there is no launcher left to
                // stay for.
                context.servers.stop_leading();
                context.finish_soon();
              },
          .failed = [&context](const std::string& why, const std::string& hint) { failed(context, why, hint); },
          .not_published = [&context](const std::string& why) { context.events->not_published(why); }});
}

void Campaigning::found(JobContext& context, const LeaderRecord& leader, bool is_self,
                        const std::optional<JobState>& state) {
  const auto* const leaving = std::get_if<Leaving>(&context.state);
  if (context.is_over() && (leaving == nullptr || !leaving->has_last_words())) return;
  context.election->set_timeout(context.plan.replacement);
  const bool was_over = is_self && state && state->outcome;
  if (was_over && (context.part.has_begun() || context.part.is_spare)) {
    // It ended while this launcher was cut off from it, and must not run again. A launcher that comes anew begins
    // another job of the same name.
    const std::string& outcome = *state->outcome;
    context.election->stop();
    context.servers.stop_leading();
    return context.end(context.part.has_begun() && outcome.empty() ? "the job has ended without this node" : outcome);
  }
  if (is_self && state && !was_over) {
    context.servers.rendezvous()->resume(*state, std::nullopt);
    context.election->publish(*state);  // under our lease
  }
  // Others may have to take another way to this launcher, through a translation or a firewall.
  context.open_link(is_self ? context.servers.own_address() : leader.address, leader.port, kFirstContact);
}

void Campaigning::leader_lost(JobContext& context, const std::string& why, const std::string& hint) {
  if (!context.part.has_begun() && !hint.empty()) return context.give_up(why, hint);
  // A limit that runs already stays: another leader that cannot be reached does not prolong the search.
  if (!std::holds_alternative<Campaigning>(context.state)) context.enter<Campaigning>();
  if (context.part.has_begun() && !context.part.is_leaderless()) {
    const std::string& deposed = context.election->why_deposed();
    context.lose_leader(context.election->leader_node(), deposed.empty() ? why : deposed);
  }
  if (!std::holds_alternative<Over>(context.state)) context.election->campaign_again();
}

void Campaigning::link_joined() { context_.enter<Linked>(); }

void Campaigning::failed(JobContext& context, const std::string& why, const std::string& hint) {
  if (auto* const leaving = std::get_if<Leaving>(&context.state); leaving != nullptr && leaving->has_last_words()) {
    return leaving->give_up();
  }
  if (context.is_over()) return;
  if (context.link) context.link->close();
  context.election->stop();
  context.servers.stop_leading();
  if (context.part.has_begun() || context.part.is_spare) return context.end(why);
  context.give_up(why, hint.empty() ? "'--rdzv-endpoint' has to name the client addresses of etcd" : hint);
}

}  // namespace lrun::launcher
