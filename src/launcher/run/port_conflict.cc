#include "run/port_conflict.h"

#include <cstdint>

#include "base/numeric_address.h"
#include "rendezvous/handshake.h"
#include "rendezvous/port_owner.h"

namespace lrun::launcher {

PortConflict explain_port_conflict(const LaunchPlan& plan, const std::string& secret) {
  constexpr Duration kTimeToAnswer(1000);
  const std::string address = loopback_address_of(plan.rendezvous ? plan.rendezvous->host : plan.master_addr);
  const int port = plan.rendezvous ? plan.rendezvous->port : plan.master_port.value_or(0);
  const PortOwner owner =
      owner_of_port(address.empty() ? "127.0.0.1" : address, static_cast<std::uint16_t>(port), secret, kTimeToAnswer);
  PortConflict taken;
  if (!owner.who.empty()) taken.why = "; " + owner.who;
  if (!plan.rendezvous) {
    taken.hint = "without '--master-port' and '--rdzv-endpoint' a free port is chosen";
  } else if (owner.is_rendezvous) {
    taken.hint = "a different port in '" + plan.rendezvous->port_option +
                 "', on every node, keeps two jobs apart; in one job a single node has '--node-rank 0'";
  } else {
    taken.hint = hint_of_other_port(plan.rendezvous->port_option);
  }
  return taken;
}

}  // namespace lrun::launcher
