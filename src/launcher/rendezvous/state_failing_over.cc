// In: the round whose leader is lost, and what its members answer. Out: a link to the successor that leads, or the
// rendezvous that is served here. Entered where a job without an etcd loses its leader.
#include "rendezvous/state_failing_over.h"

#include "rendezvous/job_context.h"

namespace lrun::launcher {
namespace {

using SearchStep = SuccessorSearch::Step;

/// All members notice the loss of their leader within a part of a heartbeat.
constexpr int kHeartbeatsOfFailover = 6;

}  // namespace

FailingOver::FailingOver(JobContext& context, bool closed)
    : context_(context), search_(*context.part.membership), probe_(context.loop) {
  // The first step follows later: a state must not enter the next one while it is being made.
  const Duration limit = kHeartbeatsOfFailover * context.plan.heartbeat;
  limit_ =
      context.loop.after(limit, [this, limit] { give_up("no leader was found within " + format_duration(limit)); });
  step_ = context.loop.after(Duration::zero(), [this, closed] { follow(search_.leader_lost(closed)); });
}

void FailingOver::leader_lost(JobContext& context, const std::string& why) {
  const bool closed = context.link->was_closed();
  context.lose_leader(context.part.membership->leader_name, why);
  if (!context.is_over()) context.enter<FailingOver>(closed);
}

void FailingOver::link_joined() {
  limit_.cancel();  // the leader that was found has limits of its own
  search_.joined();
}

void FailingOver::link_broken(const std::string& why, const std::string& /*hint*/) {
  // A candidate that cannot reach itself must not vote for another one: those that voted for it would wait in vain.
  if (context_.servers.rendezvous() != nullptr) {
    stop_serving();
    return context_.give_up(why, "");
  }
  const bool closed = context_.link->was_closed();
  step_ = context_.loop.after(Duration::zero(), [this, closed] {
    follow(search_.has_voted() ? search_.successor_lost(closed) : search_.out_of_reach());
  });
}

void FailingOver::follow(const SearchStep& step) {
  const Duration heartbeat = context_.plan.heartbeat;
  switch (step.kind) {
    case SearchStep::Kind::kProbe:
      return probe_.ask(context_.link->server_address(), context_.link->port(), heartbeat / 2,
                        [this](bool refused) { follow(search_.probed(refused)); });
    case SearchStep::Kind::kJoin:
      return context_.open_link(step.other.address, step.other.standby_port, heartbeat,
                                context_.part.membership->self.node_rank);
    case SearchStep::Kind::kLead:
      return lead(step.ballot);
    case SearchStep::Kind::kGiveUp:
      return give_up(step.why);
  }
}

void FailingOver::lead(const Ballot& ballot) {
  const Membership& round = *context_.part.membership;
  JobServers& servers = context_.servers;
  servers.lead_from_standby();
  const JobState state{
      .round = round.round, .attempt = round.attempt, .history = round.history, .run_id = round.run_id};
  servers.rendezvous()->resume(state, ballot);
  context_.open_link(servers.own_address(), servers.record().standby_port, context_.plan.heartbeat,
                     round.self.node_rank);
  context_.watch_endpoint();  // where the lost leader may be started again
}

/// The other members turn to the next one where this launcher was a candidate.
void FailingOver::stop_serving() {
  context_.watch.reset();
  context_.servers.stop_leading();
}

void FailingOver::give_up(const std::string& why) {
  if (context_.link) context_.link->close();
  stop_serving();
  context_.end(std::string(why));
}

}  // namespace lrun::launcher
