#include "rendezvous/bind_address.h"

#include <algorithm>

#include "base/numeric_address.h"

namespace lrun::launcher {
namespace {

constexpr const char* kUsualLoopback = "127.0.0.1";

/// The others are given another address of this node than the one at which it would listen.
bool is_announced_elsewhere(const RendezvousPlan& plan, const std::string& listens_at) {
  return !plan.local_addr.empty() && loopback_address_of(plan.local_addr) != listens_at;
}

}  // namespace

StoreReach reach_of(const RendezvousPlan& plan) {
  if (plan.etcd.empty()) return bind_address_of(plan).empty() ? StoreReach::kNetwork : StoreReach::kLoopback;
  const bool here = std::all_of(plan.etcd.begin(), plan.etcd.end(),
                                [](const Endpoint& endpoint) { return !loopback_address_of(endpoint.host).empty(); });
  return here && !is_announced_elsewhere(plan, kUsualLoopback) ? StoreReach::kLoopback : StoreReach::kNetwork;
}

std::string bind_address_of(const RendezvousPlan& plan) {
  if (!plan.etcd.empty()) return {};
  std::string address = loopback_address_of(plan.host);
  return is_announced_elsewhere(plan, address) ? std::string() : address;
}

}  // namespace lrun::launcher
