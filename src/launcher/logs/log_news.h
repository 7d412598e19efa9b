#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/log_stream.h"

namespace lrun::launcher {

/// Callbacks of the router to its owner, in the loop's thread, often from inside a call of the owner: worker_ended() of
/// a worker whose pipes are at their end calls `drained` before it returns. A callback may call the router, but must
/// not destroy it. Any may be empty.
struct LogEvents {
  /// The worker ended and all it wrote was read. Once a worker and attempt.
  std::function<void(int local_rank)> drained;
  /// The reader of our stdout or stderr is gone ('| head', a terminal that was closed). Called once for each console,
  /// and once for both when both are one descriptor. Output for the console is dropped from then on; files go on.
  std::function<void(LogStream)> console_closed;
  /// One line for people: output cannot be stored (disk full). Once for the files, once a console.
  std::function<void(const std::string& text)> warning;
  /// Bytes that a worker has printed, as they were read; from inside the router, which must not be called. True: call
  /// `noticed` once the router may be.
  std::function<bool(int rank, LogStream, std::string_view bytes)> printed;
  std::function<void()> noticed;
};

/// Events that wait until the router has no work half done, since a callback may call the router again. One thread.
class LogNews {
 public:
  /// Drops the events that were not reported yet.
  void set_events(LogEvents events) {
    events_ = std::move(events);
    waiting_.clear();
  }

  void printed(int rank, LogStream stream, std::string_view bytes) {
    if (events_.printed && events_.printed(rank, stream, bytes)) waiting_.emplace_back(events_.noticed);
  }
  void drained(int local_rank) { add(events_.drained, local_rank); }
  void console_closed(LogStream stream) { add(events_.console_closed, stream); }
  void warning(const std::string& text) { add(events_.warning, text); }

  /// Calls the owner about everything that has happened.
  void report() {
    if (std::exchange(reporting_, true)) return;  // the call below us goes on
    while (!waiting_.empty()) {
      for (const auto& news : std::exchange(waiting_, {})) news();
    }
    reporting_ = false;
  }

 private:
  template <typename Value>
  void add(const std::function<void(Value)>& event, std::type_identity_t<Value> value) {
    if (event) waiting_.emplace_back([&event, value] { event(value); });
  }

  LogEvents events_;
  std::vector<std::function<void()>> waiting_;
  bool reporting_ = false;
};

}  // namespace lrun::launcher
