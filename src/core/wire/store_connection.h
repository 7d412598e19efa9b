#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "wire/store_protocol.h"

namespace lrun::inline core {

/// A blocking client of a server of PyTorch's TCPStore, ours or torch's. Every call ends at its deadline: c10d's own
/// client waits for answers without one, and would hang on a server that is stopped.
///
/// Keys go over the wire as they are given; torch's own client puts a '/' in front of every key.
///
/// Errors  every function throws std::system_error: ETIMEDOUT at the deadline, EPROTO for an answer that cannot be
///         read, else what the kernel reported. The connection is closed then, as requests and answers are no longer in
///         step; later calls throw ENOTCONN.
/// Threads one at a time.
class StoreConnection {
 public:
  /// Performs the handshake: sends the magic number and a ping with this process's id.
  /// \param socket  connected and nonblocking. EPROTO: the other end is not a TCPStore.
  StoreConnection(Fd socket, SteadyTime deadline);

  /// Returns when the kernel has taken the request: the store sends no answer to it.
  void set(const std::string& key, const std::string& value, SteadyTime deadline);
  /// Whether the key exists now.
  [[nodiscard]] bool check(const std::string& key, SteadyTime deadline);
  /// The value now, at most kMaxValueBytes; empty when the key is absent.
  [[nodiscard]] std::string get(const std::string& key, SteadyTime deadline);

  /// Any other request, and the parts of its answer in their order.
  void send(const StoreRequest& request, SteadyTime deadline);
  [[nodiscard]] char receive_byte(SteadyTime deadline);
  [[nodiscard]] std::int64_t receive_number(SteadyTime deadline);
  [[nodiscard]] std::string receive_string(SteadyTime deadline, std::uint64_t most_bytes = kMaxValueBytes);

  [[nodiscard]] int fd() const { return socket_.get(); }  ///< -1 after an error

 private:
  void send_bytes(std::string_view bytes, SteadyTime deadline);
  [[nodiscard]] std::string receive(std::size_t size, SteadyTime deadline);
  [[noreturn]] void fail(int error, const std::string& what);

  Fd socket_;
};

}  // namespace lrun::inline core
