#pragma once

#include <functional>

#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun {

/// Many descriptors that are watched, and can be paused, as one.
///
/// An epoll set of its own that the loop watches: one wake-up serves all that are readable, so that their lines leave
/// in one write, and pausing 500 of them costs what pausing one costs.
class ReadableSet {
 public:
  /// \param ready  called with the tag of each readable descriptor, each at most once a turn.
  /// \param turn_ended  called after the last of a turn; may pause, add and remove.
  ReadableSet(EventLoop& loop, std::function<void(void* tag)> ready, std::function<void()> turn_ended);
  ReadableSet(const ReadableSet&) = delete;
  ReadableSet& operator=(const ReadableSet&) = delete;
  ~ReadableSet() = default;

  /// \throws std::system_error  EPERM for a regular file.
  void add(int fd, void* tag);
  /// Before its owner closes it.
  void remove(int fd);

  void pause();
  void resume();
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  void arm();
  void turn();

  EventLoop& loop_;
  std::function<void(void* tag)> ready_;
  std::function<void()> turn_ended_;
  Fd set_;
  int count_ = 0;
  bool paused_ = false;
  EventLoop::Watch watch_;
};

}  // namespace lrun
