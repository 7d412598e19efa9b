#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/console_descriptor.h"
#include "base/event_loop.h"

namespace lrun::detail {

/// The program's stderr, to which all ranks of a launch write. Never blocks: bytes that cannot be written at once wait
/// here until there is room. When the reader has gone, it discards everything. One thread.
class ErrorRelay {
 public:
  /// \param loop  must outlive this object. \param fd  stays the caller's.
  explicit ErrorRelay(EventLoop& loop, int fd = 2) : loop_(loop), console_(fd) {}

  /// Takes all of `bytes`. While blocked(), further bytes pile up: the caller should pause.
  void write(std::string_view bytes);
  /// Bytes wait.
  [[nodiscard]] bool blocked() const { return !waiting_.empty(); }
  /// Sets the function that is called when no bytes wait any more.
  void on_room(std::function<void()> told) { on_room_ = std::move(told); }

 private:
  void flush();

  EventLoop& loop_;
  ConsoleDescriptor console_;
  EventLoop::Watch watch_;  // while bytes wait
  std::string waiting_;
  std::function<void()> on_room_;
};

}  // namespace lrun::detail
