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

/// The sockets that a run's own processes hold, as far as its launcher may look.
struct RunSockets {
  std::unordered_set<std::uint64_t> inodes;
  std::set<uid_t> hidden_users;  ///< of processes of the run whose sockets may not be looked at

  [[nodiscard]] bool has(const ConnectionPeer& peer) const {
    return inodes.contains(peer.inode) || hidden_users.contains(peer.user);
  }
};

/// How a store's memory and its places are shared among its clients, so that no stranger to the run takes what its
/// workers need. Pure.
///
/// A client belongs to the run's own processes on this host, to the other processes of this host, or to another host.
/// All together are held to the whole; what others of this host hold, and what another host holds, to a part of it. Who
/// of this host's belongs to the run is found out where it matters: before settle() they share the part of the others.
class ClientShares {
 public:
  struct Limits {
    std::uint64_t most_bytes = std::uint64_t{4} << 30U;            ///< of the table and of what all clients hold
    std::uint64_t most_of_others_here = std::uint64_t{64} << 20U;  ///< held
    std::uint64_t most_of_a_host = std::uint64_t{1} << 30U;        ///< held
  };

  explicit ClientShares(Limits limits) : limits_(limits) {}
  ClientShares(const ClientShares&) = delete;
  ClientShares& operator=(const ClientShares&) = delete;
  ~ClientShares() = default;

  void add(StoreClientId client, const ConnectionPlace& place, const ConnectionPeer& peer);
  void remove(StoreClientId client);
  void clear();

  /// The client has shown what it is: until then it gives way to any other.
  void greeted(StoreClientId client) { silent_.erase(client); }
  [[nodiscard]] std::size_t num_silent() const { return silent_.size(); }

  /// What the client holds now: bytes of a request that is not whole, of answers that it has not read, and of its wait.
  void hold(StoreClientId client, std::uint64_t bytes);

  /// Why the client may not take so many bytes beside what it holds; empty: it may. \param table_bytes  of the table
  [[nodiscard]] std::string why_not(StoreClientId client, std::uint64_t bytes, std::uint64_t table_bytes) const;
  /// The same of one that is_unsettled() and for which settle() has to wait: it may be a worker, and is not to suffer
  /// for what others of this host hold. Together they may hold what another host may.
  [[nodiscard]] std::string why_not_yet(StoreClientId client, std::uint64_t bytes, std::uint64_t table_bytes) const;

  /// Whether the client is of this host, and nobody has found out yet whether it is the run's.
  [[nodiscard]] bool is_unsettled(StoreClientId client) const { return clients_.at(client).group == &unsettled_; }
  [[nodiscard]] bool has_unsettled() const { return !unsettled_.clients.empty(); }
  /// Tells the run's own among them from the others. \param of_run  nullptr: all are the run's
  void settle(const RunSockets* of_run);

  struct GivesWay {
    StoreClientId client = 0;
    std::string_view why;
  };
  /// Who loses its place to a newcomer: one that has said nothing, or is no process of the run, whichever came first;
  /// else the oldest of the host with the most clients, if it has more than the newcomer's. Never one of the run's own.
  [[nodiscard]] std::optional<GivesWay> who_gives_way(const ConnectionPlace& newcomer) const;

 private:
  using Host = std::array<std::uint32_t, 4>;
  struct Group {
    std::set<StoreClientId> clients;  ///< the oldest comes first
    std::uint64_t held = 0;
    Host host{};  ///< of one elsewhere
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
  Group unsettled_;
  Group others_here_;
  std::map<Host, Group> elsewhere_;
  std::uint64_t held_ = 0;
};

}  // namespace lrun::launcher
