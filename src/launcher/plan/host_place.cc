// The place of a run whose hosts the user names. A LaunchRequest and the list of hosts come in; a request with its
// place and an Allocation go out. multihost calls it on the head.
#include "plan/host_place.h"

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/user_error.h"
#include "plan/host_workers.h"

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;

template <class T>
void refuse_beside_hosts(const Setting<T>& setting, const LaunchRequest& request, const std::string& why) {
  if (!setting.given()) return;
  throw UserError(fmt::format("'{}' and '{}' cannot be combined: {}", setting.origin, hosts_as_written(request), why),
                  fmt::format("leave '{}' out", setting.origin));
}

/// \param hosts  how many
void refuse_spares(const LaunchRequest& request, std::size_t hosts) {
  if (!request.spares.given()) return;
  const std::size_t least = hosts - std::min(hosts - 1, static_cast<std::size_t>(request.spares.value));
  throw UserError(
      fmt::format("'{} {}' and '{}' cannot be combined: all named hosts take part", request.spares.origin,
                  request.spares.value, hosts_as_written(request)),
      hosts == 1
          ? fmt::format("leave '{}' out", request.spares.origin)
          : fmt::format("write '--num-nodes {}:{}': the run then goes on without a host that is lost", least, hosts));
}

void check_others(const LaunchRequest& request) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  refuse_beside_hosts(rendezvous.endpoint, request, "the first host hosts the rendezvous");
  refuse_beside_hosts(rendezvous.node_rank, request, "a node's rank is its place among the hosts");
  refuse_beside_hosts(rendezvous.local_addr, request, "it would be the same on all hosts");
  refuse_beside_hosts(request.setup.debug_rank, request, "a debugger needs the terminal of its host");
  if (request.standalone) {
    throw UserError(fmt::format("'--standalone' and '{}' cannot be combined", hosts_as_written(request)),
                    "remove one of them");
  }
  if (request.standard_input) {
    throw UserError(
        fmt::format("'--stdin' and '{}' cannot be combined: rank 0 may be on another host", hosts_as_written(request)),
        "let rank 0 read a file instead");
  }
}

void check_nodes(const LaunchRequest& request, const std::vector<Host>& hosts) {
  const Setting<int>& asked = request.num_nodes;
  const auto count = static_cast<int>(hosts.size());
  if (!asked.given() || asked.value == count) return;
  const bool fewer = asked.value >= 1 && asked.value < count;
  const std::vector<Host> first(hosts.begin(), hosts.begin() + (fewer ? asked.value : 0));
  throw UserError(fmt::format("'{} {}': '{}' names {}", asked.origin, asked.value, hosts_as_written(request),
                              counted(count, "host")),
                  fewer ? fmt::format("leave '{}' out, or write '-H {}'", asked.origin, text_of(first))
                        : fmt::format("leave '{}' out, or name as many hosts", asked.origin));
}

}  // namespace

bool names_hosts(const LaunchRequest& request) { return request.hosts.given() || request.hostfile.given(); }

std::string hosts_as_written(const LaunchRequest& request) {
  return request.hosts.given() ? as_written(request.hosts) : as_written(request.hostfile);
}

DeviceRequest devices_of(const Host& host) {
  DeviceRequest request{host.devices.empty() ? Kind::kCount : Kind::kList};
  for (const int number : host.devices) request.ids.push_back(std::to_string(number));
  if (request.kind == Kind::kList) return request;
  return host.slots > 0 ? DeviceRequest{Kind::kCount, host.slots} : DeviceRequest();
}

LaunchRequest placed_on_hosts(LaunchRequest request, const std::vector<Host>& hosts) {
  check_others(request);
  refuse_spares(request, hosts.size());
  check_nodes(request, hosts);
  check_worker_counts(request, hosts);
  if (have_slots(request, hosts)) {
    request.devices = {};
    request.nproc_per_node = {};
  }
  if (!request.num_nodes.given()) {
    const bool by_list = request.hosts.given();
    request.num_nodes = {static_cast<int>(hosts.size()), by_list ? request.hosts.source : request.hostfile.source,
                         by_list ? request.hosts.origin : request.hostfile.origin};
  }
  return request;
}

std::string devices_origin_of(const LaunchRequest& request, const Host& host) {
  std::string origin = request.hosts.given() ? request.hosts.origin : request.hostfile.value;
  if (!host.devices.empty()) origin = request.include.given() ? request.include.origin : kLeftByExclude;
  return origin_of_host(origin, host.name);
}

Allocation allocation_of_hosts(const LaunchRequest& request, const std::vector<Host>& hosts,
                               const AllocatedNode& here) {
  Allocation allocation{{}, hosts_as_written(request), "the user names the hosts"};
  for (const Host& host : hosts) {
    AllocatedNode node = here;
    node.name = host.name;
    node.devices = devices_of(host);
    node.devices_origin = devices_origin_of(request, host);
    allocation.nodes.push_back(std::move(node));
  }
  return allocation;
}

}  // namespace lrun::launcher
