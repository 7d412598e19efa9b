#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"

namespace lrun {

/// Where the workers' store is, and who serves it.
struct StoreAddress {
  std::string host;        ///< MASTER_ADDR
  std::uint16_t port = 0;  ///< MASTER_PORT; 0 only with `serve`: the kernel chooses
  bool serve = false;      ///< This process serves it: rank 0 without a launcher that does.

  bool operator==(const StoreAddress&) const = default;
};

/// A client of the workers' store: what ranks tell each other before they share anything else. PyTorch's TCPStore,
/// whoever serves it.
///
/// Errors  CollectiveTimeout when the server is not there until the deadline, lrun::Error when it has gone; the text
/// names
///         its address.
/// Threads one at a time.
class StoreClient {
 public:
  /// Connects, waiting for the server until the deadline. With `serve` this process serves the address from now until
  /// it ends.
  StoreClient(const StoreAddress& address, SteadyTime deadline);
  StoreClient(StoreClient&&) noexcept;
  StoreClient& operator=(StoreClient&&) noexcept;
  ~StoreClient();

  [[nodiscard]] std::uint16_t port() const;

  void set(const std::string& key, const std::string& value);
  /// The value, or empty when nobody has set the key.
  std::optional<std::string> try_get(const std::string& key);
  /// The value; waits for it. Empty when nobody has set the key until the deadline.
  /// \param give_up  asked before each look while it waits: true ends the wait, after that look, with an empty value.
  std::optional<std::string> get(const std::string& key, SteadyTime deadline,
                                 const std::function<bool()>& give_up = {});

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace lrun
