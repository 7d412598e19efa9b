#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace lrun::launcher {

/// The two ends of a TCP connection as the kernel lists them: an IPv4 address that is mapped into IPv6 counts as IPv4.
/// A value.
struct ConnectionPlace {
  bool is_ipv6 = false;
  std::array<std::uint32_t, 4> peer{};  ///< in network order; of IPv4 only the first
  std::array<std::uint32_t, 4> own{};
  std::uint16_t peer_port = 0;  ///< in network order
  std::uint16_t own_port = 0;
  std::uint32_t interface = 0;  ///< of a link-local IPv6 address

  /// The other end is on this host by its address alone: it came over loopback, or from our own address.
  [[nodiscard]] bool is_within_host() const;

  bool operator==(const ConnectionPlace&) const = default;
};

/// \return empty when `socket` is not a TCP connection, or not any more.
std::optional<ConnectionPlace> place_of_connection(int socket);

/// The other end of a connection.
struct ConnectionPeer {
  enum class Where {
    kHere,       ///< a process of this host: `user` and `inode` are its socket's
    kGone,       ///< a process of this host that has closed its end: its user cannot be found any more
    kElsewhere,  ///< no socket of this host, or the kernel does not tell
  };
  Where where = Where::kElsewhere;
  uid_t user = 0;
  std::uint64_t inode = 0;

  bool operator==(const ConnectionPeer&) const = default;
};

/// Finds the owner of the socket at the other end of a connection. By netlink, which looks up this one connection with
/// two system calls however many sockets there are; where netlink is not available, in /proc/net. One thread.
class SocketOwners {
 public:
  ConnectionPeer peer_of(const ConnectionPlace& place);

 private:
  enum class Answer { kFound, kNone, kCannotTell };
  Answer ask(const ConnectionPlace& place, ConnectionPeer& peer);
  static Answer look_up(const ConnectionPlace& place, ConnectionPeer& peer);
  bool answers_for(const ConnectionPlace& place);

  Fd netlink_;
  std::uint32_t last_question_ = 0;
  std::optional<bool> works_;  ///< netlink; empty: not tried yet
};

/// Finds the socket in the text of /proc/net/tcp or /proc/net/tcp6. Pure.
/// \return empty when it is not there.
std::optional<ConnectionPeer> find_socket(std::string_view table, const ConnectionPlace& place);

}  // namespace lrun::launcher
