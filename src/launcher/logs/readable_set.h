#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun::launcher {

/// Many descriptors that are watched, and can be paused, as one.
///
/// An epoll set of its own that the loop watches: one wake-up serves all that are readable, so that their lines leave
/// in one write, and pausing 500 of them costs what pausing one costs.
///
/// A stream that brings little at a time but without end (a line a write) would wake us for every line, and each
/// wake-up costs its writer more than the write. After some such turns in a row it leaves the epoll set and is read
/// every millisecond, until a reading finds nothing or a full pipe. Output after a silence is never delayed.
class ReadableSet {
 public:
  /// \param ready  called with the tag of each readable descriptor, each at most once a turn. \return bytes it read.
  /// \param turn_ended  called after the last of a turn; may pause, add and remove.
  ReadableSet(EventLoop& loop, std::function<std::size_t(void* tag)> ready, std::function<void()> turn_ended);
  ReadableSet(const ReadableSet&) = delete;
  ReadableSet& operator=(const ReadableSet&) = delete;
  ~ReadableSet();

  /// \throws std::system_error  EPERM for a regular file.
  void add(int fd, void* tag);
  /// Before its owner closes it.
  void remove(int fd);

  void pause();
  void resume();
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  struct Entry;

  void watch(Entry& entry);
  void arm();
  void turn();
  void read_busy();
  void note_pace(int fd, std::size_t bytes);
  void make_busy(Entry& entry);

  EventLoop& loop_;
  std::function<std::size_t(void* tag)> ready_;
  std::function<void()> turn_ended_;
  Fd set_;
  std::map<int, std::unique_ptr<Entry>> entries_;
  int busy_ = 0;  ///< entries that are not in the epoll set
  bool paused_ = false;
  SteadyTime turn_began_ = {};
  EventLoop::Watch watch_;
  EventLoop::Timer busy_timer_;
};

}  // namespace lrun::launcher
