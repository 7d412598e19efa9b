#include "plan/job_place.h"

#include <fmt/format.h>

#include "base/user_error.h"

namespace lrun {

bool leaves_nodes_to_manager(const LaunchRequest& request) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  const bool names_nodes =
      rendezvous.endpoint.given() || rendezvous.master_addr.given() || rendezvous.node_rank.given();
  return request.compat == Compat::kLrun && !request.standalone && !names_nodes;
}

LaunchRequest placed(LaunchRequest request, const Allocation& allocation) {
  if (!allocation.job) return request;
  const int nodes = static_cast<int>(allocation.nodes.size());
  const Setting<int>& asked = request.num_nodes;
  const int least = request.min_nodes == 0 ? asked.value : request.min_nodes;
  if (asked.given() && (asked.value < nodes || least > nodes)) {
    throw UserError(fmt::format("'{} {}': {} has {} nodes", asked.origin, asked.value, allocation.source, nodes),
                    fmt::format("leave '{}' out, or write 'srun --nodes {} --ntasks-per-node=1 lrun …'", asked.origin,
                                asked.value));
  }
  const std::string& origin = allocation.source;
  request.num_nodes = {nodes, Source::kScheduler, origin};
  request.rendezvous.backend = {"static", Source::kScheduler, origin};
  const int port = request.master_port.value.value_or(allocation.job->port);
  request.rendezvous.endpoint = {{allocation.job->host, port}, Source::kScheduler, origin};
  request.rendezvous.node_rank = {allocation.job->node_rank, Source::kScheduler, origin};
  if (request.rdzv_id.empty()) request.rdzv_id = allocation.job->run_name;
  return request;
}

}  // namespace lrun
