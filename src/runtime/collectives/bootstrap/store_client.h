#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "wire/store_connection.h"

namespace lrun::detail {

/// The address of the workers' store, and whether this process serves it.
struct StoreAddress {
  std::string host;        ///< MASTER_ADDR
  std::uint16_t port = 0;  ///< MASTER_PORT; 0 only with `serve`: the kernel chooses
  bool serve = false;      ///< This process serves it: rank 0 without a launcher that does.

  bool operator==(const StoreAddress&) const = default;
};

/// A client of the workers' store, in which ranks exchange values before they share anything else: PyTorch's TCPStore,
/// whichever process serves it.
///
/// Errors  CollectiveTimeout when the server is not there, or does not answer, until the deadline (an answer may always
///         take a second); lrun::Error when it has gone, or has not answered before. The text names its address.
/// Threads one at a time.
class StoreClient {
 public:
  /// Connects, waiting for the server until the deadline. With `serve` this process serves the address from now until
  /// it ends.
  StoreClient(const StoreAddress& address, SteadyTime deadline);

  [[nodiscard]] std::uint16_t port() const { return port_; }

  void set(const std::string& key, const std::string& value, SteadyTime deadline);
  /// The value, or empty when nobody has set the key.
  std::optional<std::string> try_get(const std::string& key, SteadyTime deadline);
  /// The value; waits for it. Empty when nobody has set the key until the deadline.
  /// \param give_up  asked before each look while it waits: true ends the wait, after that look, with an empty value.
  std::optional<std::string> get(const std::string& key, SteadyTime deadline,
                                 const std::function<bool()>& give_up = {});
  /// The address of this machine on the way to the server, as a number.
  [[nodiscard]] std::string local_address() const;

 private:
  std::uint16_t port_;
  std::string name_;  // for messages
  StoreConnection connection_;
};

}  // namespace lrun::detail
