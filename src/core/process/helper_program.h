#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "process/exit_status.h"
#include "process/pidfd.h"
#include "process/spawn.h"

namespace lrun::inline core {

/// A program that works for lrun, as opposed to a worker: ssh, srun, a debugger, another lrun.
struct HelperRequest {
  enum class Stream {
    kInherited,  ///< that of this process
    kNothing,    ///< /dev/null
    kPipe,       ///< to or from this process
  };

  std::string path;               ///< of the program
  std::vector<std::string> argv;  ///< argv[0] included
  /// NAME=VALUE; empty: that of this process.
  std::optional<std::vector<std::string>> environment;
  Stream input = Stream::kNothing;
  Stream output = Stream::kPipe;
  Stream errors = Stream::kPipe;
  /// Limits and ignored signals that the program gets back: those that lrun was started with.
  SpawnDefaults defaults = SpawnDefaults::of_this_process();
  bool ends_its_group = false;          ///< processes that the program leaves in its group are killed when it has ended
  Duration left_pipes = Duration(500);  ///< how long processes that the program left may hold its pipes open
  bool renews_left_pipes = false;       ///< output that still comes renews that time
};

/// One helper program, in a session of its own, with no descriptor of ours but its standard streams, and with SIGKILL
/// as its parent-death signal. Started by Boost.Process. Its end is seen by the loop, without polling where there are
/// pidfds. One thread.
class HelperProgram {
 public:
  struct Events {
    std::function<void(std::string_view bytes)> output;  ///< from its stdout
    std::function<void(std::string_view bytes)> errors;  ///< from its stderr
    /// Called once, when the program has ended and its pipes are read to their end, or `left_pipes` is over. `status`
    /// is empty where another part of this process reaped it. May destroy the HelperProgram.
    std::function<void(std::optional<ExitStatus> status)> ended;
  };

  /// \throws std::system_error  the program cannot be executed, or no process or pipe can be made.
  HelperProgram(EventLoop& loop, const HelperRequest& request, Events events);
  /// Kills the program and its process group, and reaps it; waits for a second at most.
  ~HelperProgram();
  HelperProgram(const HelperProgram&) = delete;
  HelperProgram& operator=(const HelperProgram&) = delete;

  /// The end of the program's standard input, which does not block; of Stream::kPipe, once.
  [[nodiscard]] Fd take_input() { return std::move(input_); }
  /// Stops reading its stdout, or goes on.
  void pause_output(bool paused);
  /// Reads what has come on stderr by now.
  void read_errors_now() { read_from(errors_, events_.errors); }

  /// Signals the program. \return false once it is reaped.
  bool signal(int signal_number) const { return child_->signal(signal_number); }
  /// Signals the program's process group. \return false once the program is reaped.
  bool signal_group(int signal_number) const { return child_->signal_group(signal_number); }
  [[nodiscard]] bool has_ended() const { return ended_; }

 private:
  struct Stream {
    Fd fd;
    EventLoop::Watch readable;

    void close() {
      readable.cancel();  // a watch ends before its descriptor
      fd.reset();
    }
  };

  void watch_output();
  void read_from(Stream& stream, const std::function<void(std::string_view)>& read);
  void watch_child();
  void look_at_child();
  void drain();
  void finish_when_all_is_read();

  EventLoop& loop_;
  Events events_;
  bool ends_its_group_;
  Duration left_pipes_;
  bool renews_left_pipes_;
  std::optional<PidFd> child_;
  std::optional<ExitStatus> status_;
  bool ended_ = false;
  bool paused_ = false;
  Fd input_;
  Stream output_;
  Stream errors_;
  EventLoop::Watch exit_;
  EventLoop::Timer look_;  ///< without a pidfd
  EventLoop::Timer drain_;
};

}  // namespace lrun::inline core
