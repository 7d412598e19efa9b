#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "store/key_value_table.h"
#include "store/socket_owners.h"

namespace lrun::launcher {

/// The sockets of a run's own processes, as far as the launcher may read them.
struct RunSockets {
  std::unordered_set<std::uint64_t> inodes;
  std::set<uid_t> hidden_users;  ///< users of processes of the run whose sockets the launcher may not read

  [[nodiscard]] bool has(const ConnectionPeer& peer) const {
    return inodes.contains(peer.inode) || hidden_users.contains(peer.user);
  }
};

/// Divides a store's memory and its connections among its clients, so that foreign processes cannot use up what the
/// workers of the run need. Pure.
///
/// A client is a process of the run on this host, another process of this host, or on another host. One limit is for
/// all together; the other processes of this host have a smaller one, and so has each other host. A client of this host
/// is unclassified until classify() finds out whether it belongs to the run; until then it shares the limit of the
/// other processes.
class ClientShares {
 public:
  struct Limits {
    std::uint64_t most_bytes = std::uint64_t{4} << 30U;  ///< of the table and of what all clients hold
    std::uint64_t most_of_others_here = std::uint64_t{64} << 20U;
    std::uint64_t most_of_a_host = std::uint64_t{1} << 30U;
  };

  explicit ClientShares(Limits limits) : limits_(limits) {}
  ClientShares(const ClientShares&) = delete;
  ClientShares& operator=(const ClientShares&) = delete;
  ~ClientShares() = default;

  void add(StoreClientId client, const ConnectionPlace& place, const ConnectionPeer& peer);
  void remove(StoreClientId client);
  void clear();

  /// The client has sent the protocol's magic number. Until then it is the first to be evicted.
  void validated(StoreClientId client) { silent_.erase(client); }
  [[nodiscard]] std::size_t num_silent() const { return silent_.size(); }

  /// Sets what the client holds now: the bytes of an unfinished request, of answers that it has not read, of its wait.
  void hold(StoreClientId client, std::uint64_t bytes);

  /// Why the client may not hold so many bytes more; empty: it may. \param table_bytes  what the table takes
  [[nodiscard]] std::string why_not(StoreClientId client, std::uint64_t bytes, std::uint64_t table_bytes) const;
  /// The same for a client that is_unclassified() and that cannot be classified now. It may be a worker, so what other
  /// processes of this host hold does not count. All unclassified clients together may hold as much as another host.
  [[nodiscard]] std::string why_not_yet(StoreClientId client, std::uint64_t bytes, std::uint64_t table_bytes) const;

  /// True for a client of this host of which it is not known yet whether it belongs to the run.
  [[nodiscard]] bool is_unclassified(StoreClientId client) const { return clients_.at(client).group == &unclassified_; }
  [[nodiscard]] bool has_unclassified() const { return !unclassified_.clients.empty(); }
  /// Classifies all of them. \param of_run  nullptr: all belong to the run
  void classify(const RunSockets* of_run);

  struct Eviction {
    StoreClientId client = 0;
    std::string_view why;
  };
  /// The client to close for a new one: the oldest that is silent or no process of the run; else the oldest of the host
  /// with the most clients, if that has more than the host of the new one. Never a process of the run.
  [[nodiscard]] std::optional<Eviction> find_eviction(const ConnectionPlace& newcomer) const;

 private:
  using Host = std::array<std::uint32_t, 4>;
  struct Group {
    std::set<StoreClientId> clients;  ///< the oldest comes first
    std::uint64_t held = 0;
    Host host{};  ///< of a group in elsewhere_
  };
  struct Client {
    Group* group = nullptr;
    std::uint64_t held = 0;
    ConnectionPeer peer;
  };

  static Host host_of(const ConnectionPlace& place);
  void move(StoreClientId id, Client& client, Group& to);
  [[nodiscard]] bool is_elsewhere(const Group& group) const;
  [[nodiscard]] std::uint64_t limit_of(const Group& group) const;
  [[nodiscard]] std::string why_full(std::uint64_t bytes, std::uint64_t table_bytes) const;
  [[nodiscard]] std::size_t clients_of_host(const ConnectionPlace& place) const;

  Limits limits_;
  std::unordered_map<StoreClientId, Client> clients_;
  std::set<StoreClientId> silent_;
  Group of_run_;
  Group unclassified_;
  Group others_here_;
  std::map<Host, Group> elsewhere_;
  std::uint64_t held_ = 0;
};

}  // namespace lrun::launcher
