#include "plan/job_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/user_error.h"

namespace lrun {

bool leaves_nodes_to_manager(const LaunchRequest& request) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  const bool names_nodes =
      rendezvous.endpoint.given() || rendezvous.master_addr.given() || rendezvous.node_rank.given();
  return request.compat == Compat::kLrun && !request.standalone && !names_nodes;
}

int nodes_to_start(const LaunchRequest& request, const Allocation& allocation) {
  return allocation.nodes_to_start > 0 && request.num_nodes.value > 1 ? request.num_nodes.value : 0;
}

LaunchRequest placed(LaunchRequest request, const Allocation& allocation) {
  const int nodes = std::max(allocation.nodes_to_start, static_cast<int>(allocation.nodes.size()));
  if (!allocation.job && allocation.nodes_to_start == 0) return request;
  const Setting<int>& asked = request.num_nodes;
  const int least = request.min_nodes == 0 ? asked.value : request.min_nodes;
  const bool fewer = asked.given() && asked.value < nodes;
  if (asked.given() && (least > nodes || (fewer && allocation.job))) {
    throw UserError(fmt::format("'{} {}': {} has {} nodes", asked.origin, asked.value, allocation.source, nodes),
                    allocation.job
                        ? fmt::format("leave '{}' out, or write 'srun --nodes {} --ntasks-per-node=1 lrun …'",
                                      asked.origin, asked.value)
                        : fmt::format("leave '{}' out", asked.origin));
  }
  const std::string& origin = allocation.source;
  if (!fewer) request.num_nodes = {nodes, Source::kScheduler, origin};
  if (!allocation.job) return request;
  request.rendezvous.backend = {"static", Source::kScheduler, origin};
  const int port = request.master_port.value.value_or(allocation.job->port);
  request.rendezvous.endpoint = {{allocation.job->host, port}, Source::kScheduler, origin};
  request.rendezvous.node_rank = {allocation.job->node_rank, Source::kScheduler, origin};
  if (request.rdzv_id.empty()) request.rdzv_id = allocation.job->run_name;
  return request;
}

}  // namespace lrun
