#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lrun {

/// Bytes that a nonblocking socket has not taken yet.
class SendBuffer {
 public:
  /// Where answers are appended.
  [[nodiscard]] std::string& tail() { return bytes_; }

  /// What is still to be sent.
  [[nodiscard]] std::size_t size() const { return bytes_.size() - sent_; }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// Sends as much as the socket takes now. False when the peer is gone.
  [[nodiscard]] bool send_to(int fd);

 private:
  void drop_sent();

  std::string bytes_;
  std::size_t sent_ = 0;
};

}  // namespace lrun
