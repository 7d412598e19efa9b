#pragma once

#include <termios.h>

#include <functional>
#include <string_view>

#include "base/event_loop.h"
#include "base/fd.h"
#include "logs/other_progress_line.h"
#include "logs/output_queue.h"
#include "process/pty.h"

namespace lrun::launcher {

/// lrun's own terminal lent to one program: the program gets a terminal of its own, as it would from a shell, and every
/// key and byte is passed between the two. Meanwhile Ctrl-C and Ctrl-Z are the program's.
///
/// The terminal is as it was before when the program has closed its end, and when this ends. One thread.
class TerminalRelay {
 public:
  /// Opens lrun's terminal, which is its standard input, and makes the program's.
  /// \throws std::system_error  lrun has no terminal, or there are no more.
  TerminalRelay();
  TerminalRelay(const TerminalRelay&) = delete;
  TerminalRelay& operator=(const TerminalRelay&) = delete;
  ~TerminalRelay();

  /// For the program's three standard streams.
  [[nodiscard]] int programs_end() const { return pty_.programs.get(); }

  /// Callbacks on the loop's thread. Neither may destroy the relay.
  struct Events {
    std::function<void(const OtherProgressLine& line)> drawn;  ///< the program has written, or leaves the terminal
    std::function<void()> ended;                               ///< the program has closed its end, before finish()
  };

  /// The program has its end. Takes lrun's terminal and passes on from now on.
  void begin(EventLoop& loop, Events events);

  /// The program has ended: shows what it wrote last and gives the terminal back. A terminal that takes nothing is
  /// waited for shortly.
  void finish();

  /// Between begin() and the end of the program: release() before lrun is stopped gives the terminal back, resume()
  /// takes it again, and resize() follows a change of its size.
  void release();
  void resume();
  void resize();

 private:
  /// One direction. Reads no more than what the other side has taken.
  struct Direction {
    int from = -1;
    int to = -1;
    OutputQueue queue;
    EventLoop::Watch readable;
    EventLoop::Watch writable;
  };

  void leave_keys();
  void read_some(Direction& direction);
  void write_some(Direction& direction);
  void watch(Direction& direction);
  void drew(std::string_view bytes);
  void end();

  Fd keys_;    ///< lrun's terminal, to be read
  Fd screen_;  ///< the same, to be written
  Pty pty_;
  termios before_{};
  EventLoop* loop_ = nullptr;
  bool begun_ = false;
  Events events_;
  OtherProgressLine line_;
  Direction to_program_;
  Direction to_screen_;
};

}  // namespace lrun::launcher
