#pragma once

#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun {

/// The stderr of one rank: passed on as it comes, its last lines kept for the verdict. One thread.
class RankErrors {
 public:
  /// \throws std::system_error  no pipe.
  RankErrors();

  /// The end that the rank gets.
  [[nodiscard]] int rank_end() const { return write_.get(); }
  /// The rank has it: from now on `loop` reads.
  void begin(EventLoop& loop);
  /// What has come and was not read yet, and no more: a process that the rank left behind may hold the other end.
  void drain();
  [[nodiscard]] std::vector<std::string> last_lines() const;

 private:
  bool read_some();

  Fd read_;
  Fd write_;
  EventLoop::Watch watch_;
  std::string tail_;
};

}  // namespace lrun
