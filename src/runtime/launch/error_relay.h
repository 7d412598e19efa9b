#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/console_descriptor.h"
#include "base/event_loop.h"

namespace lrun::detail {

/// The program's stderr, to which all ranks of a launch speak. Never blocks: what does not go at once waits here, and
/// goes when there is room. When nobody is left who reads it, it swallows everything. One thread.
class ErrorRelay {
 public:
  /// \param loop  must outlive this object. \param fd  stays the caller's.
  explicit ErrorRelay(EventLoop& loop, int fd = 2) : loop_(loop), console_(fd) {}

  /// Takes all of `bytes`. Who writes on while blocked() lets them pile up.
  void write(std::string_view bytes);
  /// Something waits.
  [[nodiscard]] bool blocked() const { return !waiting_.empty(); }
  /// Who is told when nothing waits any more.
  void on_room(std::function<void()> told) { on_room_ = std::move(told); }

 private:
  void flush();

  EventLoop& loop_;
  ConsoleDescriptor console_;
  EventLoop::Watch watch_;  // while something waits
  std::string waiting_;
  std::function<void()> on_room_;
};

}  // namespace lrun::detail
