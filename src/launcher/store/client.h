#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "store/protocol.h"
#include "store/store.h"

namespace lrun::launcher {

/// A blocking client of a TCPStore server, ours or torch's. Speaks of keys as they are on the wire: torch's own client
/// puts a '/' in front of every key, this one does not.
class StoreClient : public Store {
 public:
  /// Connects, shows the magic number and exchanges a PING; tries again, with growing pauses, while the connection is
  /// refused or breaks.
  /// \param address  numeric IPv4 or IPv6, as '127.0.0.1' or '::1'. Names are the caller's to resolve.
  /// \throws std::system_error  the last reason when the deadline has passed; EINVAL for an address that is not
  /// numeric.
  StoreClient(const std::string& address, std::uint16_t port, SteadyTime deadline);

  void set(const std::string& key, const std::string& value, SteadyTime deadline) override;
  std::optional<std::string> get(const std::string& key, SteadyTime deadline) override;
  bool wait(const std::vector<std::string>& keys, SteadyTime deadline) override;
  bool check(const std::vector<std::string>& keys, SteadyTime deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount, SteadyTime deadline) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired,
                          SteadyTime deadline) override;
  bool delete_key(const std::string& key, SteadyTime deadline) override;

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
  void greet(SteadyTime deadline);
  void send(const StoreRequest& request, SteadyTime deadline);
  /// For requests without an answer: done when the store has carried it out.
  void send_and_confirm(const StoreRequest& request, SteadyTime deadline);
  /// The end of a WAIT or BARRIER that was sent; takes it back at the deadline.
  bool stopped_waiting(SteadyTime deadline);

  std::uint8_t receive_byte(SteadyTime deadline);
  std::int64_t receive_number(SteadyTime deadline);
  std::string receive_string(SteadyTime deadline);
  /// Waits until `size` unread bytes are there; false at the deadline.
  bool has_received(std::size_t size, SteadyTime deadline);
  std::string take(std::size_t size, SteadyTime deadline);
  [[noreturn]] void fail(int error, const std::string& what);

  Fd socket_;
  std::string received_;
  std::size_t taken_ = 0;  // bytes of received_ that were taken
  std::uint32_t nonce_ = 0;
};

}  // namespace lrun::launcher
