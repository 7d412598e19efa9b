#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "runtime/launch/error_relay.h"

namespace lrun::detail {

/// The stderr of one rank: passed on as it comes, its last lines kept for the verdict. While the relay has no room it
/// is not read, so that the rank waits as it would for the program's own stderr. One thread.
class RankErrors {
 public:
  /// \param relay  must outlive this object.
  /// \throws std::system_error  no pipe.
  explicit RankErrors(ErrorRelay& relay);

  /// The end that the rank gets.
  [[nodiscard]] int rank_end() const { return write_.get(); }
  /// The rank has it: from now on `loop` reads.
  void begin(EventLoop& loop);
  /// There is room in the relay again.
  void resume();
  /// Reads the bytes that are there now and no more: an orphan of the rank may keep the other end open.
  void drain();
  [[nodiscard]] std::vector<std::string> last_lines() const;

 private:
  void watch();
  bool read_some();

  ErrorRelay& relay_;
  EventLoop* loop_ = nullptr;  // after begin(), until the end of the stream
  Fd read_;
  Fd write_;
  EventLoop::Watch watch_;
  std::string tail_;
  std::size_t read_bytes_ = 0;
};

}  // namespace lrun::detail
