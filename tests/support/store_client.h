#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/store_connection.h"

namespace lrun {

/// Every operation of a TCPStore server, ours or torch's, for tests and the workers that they start. The products' own
/// client is StoreConnection. Keys are as on the wire.
///
/// A key that does not come in time is a value; trouble with the store is std::system_error, as in StoreConnection.
class StoreClient {
 public:
  /// Connects to a numeric address. Tries again while the connection is refused or breaks, until the deadline.
  StoreClient(const std::string& address, std::uint16_t port, SteadyTime deadline);

  /// Done when the store has it, so that another client sees it at once.
  void set(const std::string& key, const std::string& value, SteadyTime deadline);
  /// Waits for the key and gets its value; empty when it did not come before the deadline.
  std::optional<std::string> get(const std::string& key, SteadyTime deadline);
  /// Waits until all keys exist; false when they did not before the deadline.
  bool wait(const std::vector<std::string>& keys, SteadyTime deadline);
  /// Whether all keys exist now.
  bool check(const std::vector<std::string>& keys, SteadyTime deadline);
  std::int64_t add(const std::string& key, std::int64_t amount, SteadyTime deadline);
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired,
                          SteadyTime deadline);
  /// Whether the key existed.
  bool delete_key(const std::string& key, SteadyTime deadline);

  /// The value now, without waiting for the key; empty text when absent.
  std::string get_now(const std::string& key, SteadyTime deadline);
  void append(const std::string& key, const std::string& value, SteadyTime deadline);
  std::vector<std::string> multi_get_now(const std::vector<std::string>& keys, SteadyTime deadline);
  void multi_set(const std::vector<std::pair<std::string, std::string>>& pairs, SteadyTime deadline);
  std::int64_t num_keys(SteadyTime deadline);
  std::vector<std::string> list_keys(SteadyTime deadline);
  void queue_push(const std::string& key, const std::string& value, SteadyTime deadline);
  /// The oldest value now, without waiting; empty when there is none.
  std::optional<std::string> queue_pop_now(const std::string& key, SteadyTime deadline);
  std::int64_t queue_length(const std::string& key, SteadyTime deadline);
  /// Waits until `world_size` clients have come to `key`; false when they had not before the deadline. The store does
  /// not forget that this client came.
  bool barrier(const std::string& key, std::int64_t world_size, SteadyTime deadline);
  void ping(SteadyTime deadline);

 private:
  bool stopped_waiting(SteadyTime deadline);
  void send_and_confirm(const StoreRequest& request, SteadyTime deadline);

  StoreConnection connection_;
  std::uint32_t pings_ = 0;
};

}  // namespace lrun
