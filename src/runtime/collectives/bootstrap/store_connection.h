#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace lrun::detail {

/// A connection to a server of PyTorch's TCPStore, for the requests that liblrun needs. c10d's own client waits for
/// answers without a deadline: a server that is stopped would block its ranks for ever.
///
/// Errors  every function throws std::system_error: ETIMEDOUT at the deadline, else what went wrong. After an error in
///         the middle of a request the connection is closed (ENOTCONN).
/// Threads one at a time.
class StoreConnection {
 public:
  /// Connects; while the name is unknown or nobody answers there, it tries again until the deadline.
  /// EPROTO: it is no such server.
  StoreConnection(const std::string& host, std::uint16_t port, SteadyTime deadline);

  /// Returns when the machine has taken the request; there is no answer to it.
  void set(const std::string& key, const std::string& value, SteadyTime deadline);
  [[nodiscard]] bool check(const std::string& key, SteadyTime deadline);
  /// The value of a key that check() has seen.
  [[nodiscard]] std::string get(const std::string& key, SteadyTime deadline);
  /// This end of the connection, as a number.
  [[nodiscard]] std::string local_address() const;

 private:
  void greet(SteadyTime deadline);
  void send(const std::string& request, SteadyTime deadline);
  [[nodiscard]] std::string receive(std::size_t bytes, SteadyTime deadline);
  [[noreturn]] void give_up(int error, const std::string& what);

  Fd socket_;  // empty once given up
};

}  // namespace lrun::detail
