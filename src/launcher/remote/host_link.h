#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "process/exit_status.h"
#include "process/helper_program.h"
#include "process/spawn.h"
#include "remote/frames.h"
#include "store/send_buffer.h"

namespace lrun::launcher {

/// The head's connection to the launcher of one host: the standard streams of a child process, ssh or, on this host,
/// lrun itself. The child ends with its object, and with this process however that ends; the launcher behind it sees
/// the end of its input then. Never blocks. One thread.
class HostLink {
 public:
  struct Events {
    std::function<void(NodeFrame frame)> frame;
    /// It has taken some of the bytes that go first. The output of a login is no progress.
    std::function<void()> progress;
    /// The child has ended, and all its frames were reported. `last_line`: of its stderr since its host has answered;
    /// of one that has not answered, of all that it printed, as a login that is refused does. May destroy this object.
    std::function<void(const ExitStatus& status, const std::string& last_line)> ended;
  };

  /// \param defaults  of this process as it was started: the child and its workers get them.
  /// \param first  bytes that go before all frames; the caller's, which keeps them for as long as this lives.
  /// \throws std::system_error  there is no such program, or no process.
  HostLink(EventLoop& loop, const std::vector<std::string>& command, const SpawnDefaults& defaults,
           std::string_view first, Events events);
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  void send(NodeFrame::Kind kind, std::string_view payload);
  /// Whole frames.
  void send_bytes(std::string_view frames);
  /// Stops reading, or goes on: for a console that is full.
  void pause(bool paused) { program_.pause_output(paused); }
  /// Closes its input, which ends the launcher behind it. Its frames are still reported.
  void end_input();
  /// Closes its input, which ends the child and the launcher behind it. Nothing is reported any more.
  void close();

  /// The handshake of the host's lrun has come.
  [[nodiscard]] bool has_answered() const { return reader_.has_handshake(); }

 private:
  void flush();
  void read_output(std::string_view bytes);
  void give_frames();
  void keep_last(std::string_view bytes);
  void ended(const ExitStatus& status);

  EventLoop& loop_;
  Events events_;
  NodeFrameReader reader_{kNodeHandshake};
  std::string_view first_;  ///< the part of it that is not sent yet
  SendBuffer unsent_;
  std::string last_output_;  ///< the last lines of stderr and, before the handshake, of stdout
  HelperProgram program_;
  Fd input_;
  EventLoop::Watch writable_;
};

}  // namespace lrun::launcher
