#include "run/horovod_facts.h"

#include <fmt/format.h>

#include "cluster/own_names.h"

namespace lrun::launcher {
namespace {

std::string own_address(const Membership& membership) {
  const std::string& address = membership.self.address;
  const std::string& reached = address.empty() ? membership.master_addr : address;
  return reached == "localhost" ? "127.0.0.1" : reached;
}

}  // namespace

void add_horovod_facts(const LaunchPlan& plan, const Membership& membership, RunFacts& facts) {
  const Member& self = membership.self;
  const bool of_rank = plan.is_of_one_rank;
  if (!of_rank) facts.nodes_by_workers = membership.nodes_by_workers;
  if (!of_rank) facts.earlier_by_workers = self.earlier_by_workers;
  // Launchers of one node share its name, and Horovod takes the ranks with one name for those of a host.
  const int node_rank = of_rank ? plan.nodes.front().node_rank : self.node_rank;
  facts.node_name = self.shares_name ? fmt::format("{}-{}", self.name, node_rank) : self.name;
  facts.network_interface = interface_of(own_address(membership));
}

std::string horovod_network_problem(const Membership& membership, const Environment& environment) {
  if (membership.master_addr.find(':') != std::string::npos) {
    return fmt::format("the workers' store is at {}, and Horovod reaches its rendezvous over IPv4 only",
                       membership.master_addr);
  }
  const std::string address = own_address(membership);
  if (environment.has("HOROVOD_GLOO_IFACE") || !interface_of(address).empty()) return {};
  return fmt::format(
      "no network interface of this host has the address {}; '--env HOROVOD_GLOO_IFACE=NAME' says which "
      "one Horovod is to use",
      address);
}

}  // namespace lrun::launcher
