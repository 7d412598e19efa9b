#include "run/port_conflict.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/numeric_address.h"
#include "rendezvous/handshake.h"
#include "rendezvous/port_owner.h"

namespace lrun::launcher {
namespace {

/// A node rank that a person wrote is taken where another node has the port: to each node its own.
bool is_rank_of_another(const std::optional<RendezvousPlan>& rendezvous, const PortOwner& owner) {
  return rendezvous && owner.is_rendezvous && rendezvous->node_rank == 0 && rendezvous->node_rank_from.starts_with('-');
}

}  // namespace

PortConflict explain_port_conflict(const LaunchPlan& plan, const std::string& secret, const std::string& error) {
  constexpr Duration kTimeToAnswer(1000);
  const std::optional<RendezvousPlan>& rendezvous = plan.rendezvous;
  const std::string address = loopback_address_of(rendezvous ? rendezvous->host : plan.master_addr);
  const int port = rendezvous ? rendezvous->port : plan.master_port.value_or(0);
  const PortOwner owner =
      owner_of_port(address.empty() ? "127.0.0.1" : address, static_cast<std::uint16_t>(port), secret, kTimeToAnswer);
  if (is_rank_of_another(rendezvous, owner)) {
    const int last = rendezvous->max_nodes + rendezvous->spares - 1;
    return {fmt::format("'{} 0': another launcher at {} is node rank 0 already", rendezvous->node_rank_from,
                        text_of(Endpoint{rendezvous->host, port})),
            fmt::format("on other nodes write '{}{}, for a second job another port; 'lrun status' shows one left over",
                        rendezvous->node_rank_from, last > 1 ? fmt::format("' 1 to {}", last) : " 1'")};
  }
  PortConflict taken{error + (owner.who.empty() ? "" : "; " + owner.who), ""};
  if (!rendezvous) {
    taken.hint = "without '--master-port' and '--rdzv-endpoint' a free port is chosen";
  } else if (owner.is_rendezvous) {
    taken.hint = "a different port in '" + rendezvous->port_option +
                 "', on every node, keeps two jobs apart; in one job a single node has '--node-rank 0'";
  } else {
    taken.hint = hint_of_other_port(rendezvous->port_option);
  }
  return taken;
}

}  // namespace lrun::launcher
