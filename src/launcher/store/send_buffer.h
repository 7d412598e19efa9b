#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Bytes that a nonblocking descriptor has not accepted yet. Sent bytes are dropped.
class SendBuffer {
 public:
  /// Where answers are appended.
  [[nodiscard]] std::string& tail() { return bytes_; }

  /// Bytes that are still to be sent.
  [[nodiscard]] std::size_t size() const { return bytes_.size() - sent_; }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// Sends as much as the socket accepts now. False when the peer is gone.
  [[nodiscard]] bool send_to(int fd);
  /// The same with `more` behind it. Copies only the part of `more` that the socket does not accept now.
  [[nodiscard]] bool send_to(int fd, std::string_view more);
  /// The same for any descriptor. SIGPIPE has to be ignored.
  [[nodiscard]] bool write_to(int fd);

 private:
  template <typename Give>
  bool give_all(const Give& give);
  void drop_sent();

  std::string bytes_;
  std::size_t sent_ = 0;
};

}  // namespace lrun::launcher
