#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace lrun::launcher {

/// Identifies a connection while the server runs; never used twice.
using StoreClientId = std::uint64_t;

/// The store's keys, and the clients that wait for them. Pure: no sockets, no time. Clients time out by themselves.
///
/// Keys never expire. Operations that write a key release the clients that waited for it; the caller collects them with
/// take_released() and answers each. A client waits for one thing at a time: a second wait replaces the first.
class KeyValueTable {
 public:
  void set(std::string key, std::string value);

  /// Stores `desired` when the key holds `expected`, or is absent and `expected` is empty. Returns the value
  /// afterwards, but `expected` for an absent key that was expected to have a value: torch's servers answer so, and its
  /// clients compare the answer with the value that they wanted to write.
  std::string compare_set(const std::string& key, const std::string& expected, std::string desired);

  /// The value; empty when absent.
  [[nodiscard]] const std::string& get(const std::string& key) const;

  /// Adds to a decimal number (absent is 0; overflow wraps) and returns the sum. The text is read as strtoll reads it,
  /// what follows the digits is dropped. Empty when the value does not begin with a number of 64 bits.
  std::optional<std::int64_t> add(const std::string& key, std::int64_t amount);

  void append(const std::string& key, const std::string& value);

  /// Whether the key existed. Clients that wait are not released.
  bool delete_key(const std::string& key);

  /// Whether all keys exist; a queue that is not empty counts as a key.
  [[nodiscard]] bool check(const std::vector<std::string>& keys) const;

  /// Whether all keys exist (as check); if not, `client` waits until the last of them was written.
  bool wait(StoreClientId client, const std::vector<std::string>& keys);

  enum class Barrier { kOpen, kWaiting, kNotANumber };
  /// Counts one more arrival at `key`. kOpen when `world_size` or more clients have arrived: all that waited there are
  /// released. The counter is an ordinary decimal value. It is never reset, and clients that gave up stay counted.
  Barrier arrive(StoreClientId client, const std::string& key, std::int64_t world_size);

  /// Forgets what `client` waits for; for CANCEL_WAIT and for connections that ended.
  void cancel_wait(StoreClientId client);

  /// Queues have their own name space: they are not counted, not listed and not deleted. A push releases one waiting
  /// client, the one that has waited longest.
  void queue_push(const std::string& key, std::string value);
  struct Popped {
    std::int64_t length_before = 0;
    std::string value;  ///< of the oldest entry; empty when there was none
  };
  Popped queue_pop(const std::string& key);
  [[nodiscard]] std::int64_t queue_length(const std::string& key) const;

  /// Without queues; every key as clients wrote it.
  [[nodiscard]] const std::unordered_map<std::string, std::string>& values() const { return values_; }

  /// Approximate memory of keys, values, queues and waits: their texts, and the table's own overhead for each.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The part of the client's wait; 0: it does not wait.
  [[nodiscard]] std::uint64_t bytes_of_wait(StoreClientId client) const;
  /// The most that a wait for these keys takes.
  static std::uint64_t bytes_of_wait(const std::vector<std::string>& keys);

  /// Clients whose wait ended since the last call, in the order in which they were released.
  std::vector<StoreClientId> take_released();

 private:
  using Clients = std::vector<StoreClientId>;  // in the order in which they came
  struct Wait {
    std::vector<std::string> keys;  // missing when the wait began
    std::size_t missing = 0;        // how many of them are still missing
    bool at_barrier = false;
    std::uint64_t bytes = 0;
  };

  [[nodiscard]] bool exists(const std::string& key) const;
  using Entry = std::unordered_map<std::string, std::string>::value_type;
  template <typename Key>
  Entry& entry_of(Key&& key);
  void put(std::string& place, std::string value);
  void key_was_written(const std::string& key);
  /// The client has one key less to wait for.
  void satisfy(StoreClientId client);
  void begin_wait(StoreClientId client, Wait wait);
  void end_wait(StoreClientId client);
  void release(StoreClientId client);

  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::deque<std::string>> queues_;  // only queues that are not empty
  std::unordered_map<StoreClientId, Wait> waits_;
  std::unordered_map<std::string, Clients> waiting_for_key_;
  std::unordered_map<std::string, Clients> waiting_at_barrier_;
  Clients released_;
  std::uint64_t bytes_ = 0;
};

}  // namespace lrun::launcher
