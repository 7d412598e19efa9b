// In: the store's clients as they come, go and hold memory. Out: whether one may hold more, and which one to close for
// a new one. StoreServer asks.
#include "store/client_shares.h"

#include <algorithm>
#include <utility>

namespace lrun::launcher {
namespace {

std::string more_than(std::uint64_t limit, const char* who) {
  return std::string("unfinished requests and unread answers of ") + who + " take more than " + std::to_string(limit) +
         " bytes";
}

}  // namespace

/// A host chooses the lower half of its IPv6 address freely, and may change it for each connection.
ClientShares::Host ClientShares::host_of(const ConnectionPlace& place) {
  Host host = place.peer;
  if (place.is_ipv6) host[2] = host[3] = 0;
  return host;
}

void ClientShares::add(StoreClientId id, const ConnectionPlace& place, const ConnectionPeer& peer) {
  Group* group = &of_run_;  // also a client of this host where the kernel does not tell
  if (peer.where == ConnectionPeer::Where::kHere) {
    group = &unclassified_;
  } else if (!place.is_within_host()) {
    group = &elsewhere_[host_of(place)];
    group->host = host_of(place);
  }
  clients_[id] = {group, 0, peer};
  group->clients.insert(id);
  silent_.insert(id);
}

void ClientShares::remove(StoreClientId id) {
  const auto entry = clients_.find(id);
  if (entry == clients_.end()) return;
  hold(id, 0);
  Group& group = *entry->second.group;
  group.clients.erase(id);
  if (group.clients.empty() && is_elsewhere(group)) elsewhere_.erase(Host(group.host));
  clients_.erase(entry);
  silent_.erase(id);
}

void ClientShares::clear() {
  clients_.clear();
  silent_.clear();
  of_run_ = unclassified_ = others_here_ = {};
  elsewhere_.clear();
  held_ = 0;
}

void ClientShares::hold(StoreClientId id, std::uint64_t bytes) {
  Client& client = clients_.at(id);
  if (client.held == bytes) return;
  held_ = held_ - client.held + bytes;
  client.group->held = client.group->held - client.held + bytes;
  client.held = bytes;
}

bool ClientShares::is_elsewhere(const Group& group) const {
  return &group != &of_run_ && &group != &unclassified_ && &group != &others_here_;
}

std::uint64_t ClientShares::limit_of(const Group& group) const {
  if (&group == &of_run_) return limits_.most_bytes;
  return is_elsewhere(group) ? limits_.most_of_a_host : limits_.most_of_others_here;
}

std::string ClientShares::why_full(std::uint64_t bytes, std::uint64_t table_bytes) const {
  if (table_bytes + held_ + bytes <= limits_.most_bytes) return {};
  return "the store is full: it takes " + std::to_string(limits_.most_bytes) + " bytes at most";
}

std::string ClientShares::why_not(StoreClientId id, std::uint64_t bytes, std::uint64_t table_bytes) const {
  if (std::string full = why_full(bytes, table_bytes); !full.empty()) return full;
  const Group& group = *clients_.at(id).group;
  const bool is_shared = &group == &unclassified_ || &group == &others_here_;
  const std::uint64_t held = is_shared ? unclassified_.held + others_here_.held : group.held;
  if (held + bytes <= limit_of(group)) return {};
  return more_than(limit_of(group), is_shared ? "processes of this host outside the run" : "its host");
}

std::string ClientShares::why_not_yet(StoreClientId id, std::uint64_t bytes, std::uint64_t table_bytes) const {
  if (!is_unclassified(id)) return why_not(id, bytes, table_bytes);
  if (std::string full = why_full(bytes, table_bytes); !full.empty()) return full;
  if (unclassified_.held + bytes <= limits_.most_of_a_host) return {};
  return more_than(limits_.most_of_a_host, "new clients of this host");
}

void ClientShares::move(StoreClientId id, Client& client, Group& to) {
  client.group->held -= client.held;
  to.held += client.held;
  to.clients.insert(id);
  client.group = &to;
}

void ClientShares::classify(const RunSockets* of_run) {
  for (const StoreClientId id : std::exchange(unclassified_.clients, {})) {
    Client& client = clients_.at(id);
    move(id, client, of_run == nullptr || of_run->has(client.peer) ? of_run_ : others_here_);
  }
}

std::size_t ClientShares::clients_of_host(const ConnectionPlace& place) const {
  const auto host = elsewhere_.find(host_of(place));
  if (host != elsewhere_.end()) return host->second.clients.size();
  if (!place.is_within_host()) return 0;
  return of_run_.clients.size() + unclassified_.clients.size() + others_here_.clients.size();
}

std::optional<ClientShares::Eviction> ClientShares::find_eviction(const ConnectionPlace& newcomer) const {
  const StoreClientId none = ~StoreClientId{0};
  const StoreClientId silent = silent_.empty() ? none : *silent_.begin();
  const StoreClientId other = others_here_.clients.empty() ? none : *others_here_.clients.begin();
  if (silent != none && silent < other) return Eviction{silent, "it has sent nothing, and others want to connect"};
  if (other != none) return Eviction{other, "it is not a process of the run, and others want to connect"};
  const auto most = std::max_element(elsewhere_.begin(), elsewhere_.end(), [](const auto& one, const auto& another) {
    return one.second.clients.size() < another.second.clients.size();
  });
  if (most == elsewhere_.end() || most->second.clients.size() <= clients_of_host(newcomer) + 1) return std::nullopt;
  return Eviction{*most->second.clients.begin(), "its host has more connections than others that want to connect"};
}

}  // namespace lrun::launcher
