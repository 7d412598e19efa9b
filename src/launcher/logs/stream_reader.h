#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/event_loop.h"
#include "logs/log_worker.h"
#include "logs/readable_set.h"

namespace lrun::launcher {

/// Reads the streams of all workers as they become readable. The streams that go to one console are paused and go on
/// together. One thread.
class StreamReader {
 public:
  struct Events {
    std::function<void(LogSource& source, std::string_view bytes)> bytes;
    std::function<void(LogSource& source)> ended;      ///< read_end is closed
    std::function<void(LogStream stream)> turn_ended;  ///< all streams of this console that were readable were read
  };

  /// \param one_console  for stdout and stderr
  StreamReader(EventLoop& loop, bool one_console, Events events);
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  /// Reads `source.read_end` from now on.
  /// \throws std::system_error  it cannot be watched.
  void add(LogSource& source);
  /// Reads what an ended worker has left in its pipe, also while reading is paused. A grandchild that goes on writing
  /// is not followed beyond what the pipe holds.
  void read_rest(LogSource& source);
  /// Closes a stream that is not closed yet.
  void end(LogSource& source);

  void pause(LogStream stream);
  void resume(LogStream stream);
  [[nodiscard]] bool paused(LogStream stream) const { return sets_[index_of(stream)].paused(); }
  /// No stream is read.
  [[nodiscard]] bool empty() const { return sets_[0].empty() && sets_[1].empty(); }
  /// In all, of streams that have ended, too.
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  [[nodiscard]] std::size_t index_of(LogStream stream) const {
    return one_console_ || stream == LogStream::kOut ? 0 : 1;
  }
  /// \return how many bytes came; 0: there are none now, or the stream has ended.
  std::size_t read_once(LogSource& source);

  bool one_console_;
  Events events_;
  std::array<ReadableSet, 2> sets_;  ///< of one console each
  std::uint64_t bytes_read_ = 0;
  std::unique_ptr<char[]> buffer_;  ///< one for all streams, only while there are any
};

}  // namespace lrun::launcher
