#pragma once

#include <functional>
#include <string_view>

#include "base/event_loop.h"
#include "remote/frames.h"
#include "store/send_buffer.h"

namespace lrun::launcher {

/// The connection of a node or relay to the head: frames come in through one descriptor and go out through another.
/// Ends when the head's end of it is closed, when no frame comes for too long, or when the bytes are no frames. One
/// thread.
class HeadConnection {
 public:
  struct Events {
    std::function<void(const NodeFrame& frame)> frame;
    std::function<void()> lost;             ///< the head, or the way to it, is gone; once
    std::function<void(bool full)> filled;  ///< too much is unsent; or no longer
    std::function<void()> flushed = [] {};  ///< everything was sent
  };

  /// Sends the handshake. The descriptors belong to the process and become nonblocking: they are this process's alone.
  HeadConnection(EventLoop& loop, int in, int out, Events events);
  HeadConnection(const HeadConnection&) = delete;
  HeadConnection& operator=(const HeadConnection&) = delete;

  void send(NodeFrame::Kind kind, std::string_view payload);
  /// How long the head may be silent from its next frame on; 0: for ever. kMostSilence before it is set.
  void set_most_silence(Duration limit) { most_silence_ = limit; }

  [[nodiscard]] bool is_lost() const { return is_lost_; }
  /// Everything was sent.
  [[nodiscard]] bool empty() const { return unsent_.empty(); }

 private:
  void read_some();
  void count_silence();
  void flush();
  void lose();

  EventLoop& loop_;
  int in_;
  int out_;
  Events events_;
  NodeFrameReader frames_;
  SendBuffer unsent_;
  Duration most_silence_ = kMostSilence;
  bool is_lost_ = false;
  bool is_full_ = false;
  EventLoop::Watch readable_;
  EventLoop::Watch writable_;
  EventLoop::Timer silence_;
};

}  // namespace lrun::launcher
