#include "rendezvous/state_linked.h"

#include "rendezvous/job_context.h"

namespace lrun::launcher {

void Linked::link_broken(const std::string& why, const std::string& hint) {
  JobContext& context = context_;
  if (context.election) return Campaigning::leader_lost(context, why, hint);
  const bool leads = context.servers.rendezvous() != nullptr;
  if (context.part.can_fail_over() && !leads) return FailingOver::leader_lost(context, why);
  const bool has_no_server = context.plan.leaves_endpoint && (hint.empty() || context.link->met_lone_job());
  context.give_up(why, has_no_server ? kServeEndpointHint : hint);
}

}  // namespace lrun::launcher
