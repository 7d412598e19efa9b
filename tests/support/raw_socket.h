#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/connect.h"
#include "wire/store_protocol.h"

namespace lrun::launcher {

/// A client that may misbehave: bytes out, bytes in.
class RawSocket {
 public:
  explicit RawSocket(std::uint16_t port)
      : socket_(connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + std::chrono::seconds(10))) {}

  /// Sends all of it; false when the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno != EAGAIN || !poll_until(socket_.get(), POLLOUT, in_ten_seconds())) {
        return false;
      }
    }
    return true;
  }

  bool send(const StoreRequest& request) {
    std::string bytes;
    append_request(bytes, request);
    return send(bytes);
  }

  bool send_handshake() { return send({StoreCommand::kValidate, {}, kStoreMagic}); }

  /// Exactly `size` bytes, or fewer when the server closed the connection or ten seconds have passed.
  std::string receive(std::size_t size) {
    std::string bytes;
    while (bytes.size() < size && poll_until(socket_.get(), POLLIN, in_ten_seconds())) {
      char piece[65536];
      const ssize_t count = ::recv(socket_.get(), piece, std::min(sizeof piece, size - bytes.size()), 0);
      if (count == 0 || (count < 0 && errno != EAGAIN)) break;
      if (count > 0) bytes.append(piece, static_cast<std::size_t>(count));
    }
    return bytes;
  }

  /// Whether the server closes the connection within ten seconds; throws away what comes before.
  bool is_closed() {
    char piece[65536];
    while (poll_until(socket_.get(), POLLIN, in_ten_seconds())) {
      const ssize_t count = ::recv(socket_.get(), piece, sizeof piece, 0);
      if (count == 0 || (count < 0 && errno != EAGAIN)) return true;
    }
    return false;
  }

  /// Whether bytes, or an end, are there to be read now.
  [[nodiscard]] bool is_readable() const { return poll_until(socket_.get(), POLLIN, std::chrono::steady_clock::now()); }

  void close() { socket_.reset(); }
  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  static SteadyTime in_ten_seconds() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

  Fd socket_;
};

}  // namespace lrun::launcher
