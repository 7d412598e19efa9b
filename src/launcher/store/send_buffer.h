#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Bytes that a nonblocking descriptor has not taken yet. What was taken is not kept.
class SendBuffer {
 public:
  /// Where answers are appended.
  [[nodiscard]] std::string& tail() { return bytes_; }

  /// What is still to be sent.
  [[nodiscard]] std::size_t size() const { return bytes_.size() - sent_; }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// Sends as much as the socket takes now. False when the peer is gone.
  [[nodiscard]] bool send_to(int fd);
  /// The same with `more` behind it, of which only what the socket does not take now is copied.
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
