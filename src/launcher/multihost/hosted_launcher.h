#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/fd.h"
#include "multihost/run_host_order.h"
#include "process/exit_status.h"
#include "process/pidfd.h"
#include "remote/frames.h"

namespace lrun::launcher {

/// The launcher of this host as a forked child of its agent: carries out the order. Its output and that of the workers
/// becomes frames. One thread.
class HostedLauncher {
 public:
  struct Events {
    std::function<void(NodeFrame::Kind kind, std::string_view payload)> frame;
    std::function<void(const ExitStatus& status)> ended;  ///< and all that it printed was passed on; once
  };

  HostedLauncher(EventLoop& loop, Events events) : loop_(loop), events_(std::move(events)) {}
  HostedLauncher(const HostedLauncher&) = delete;
  HostedLauncher& operator=(const HostedLauncher&) = delete;

  /// \param listener  a socket that listens for the rendezvous; empty: another node has it
  /// \param ignores_broken_pipes  SIGPIPE was ignored when this process was started, so workers ignore it, too
  /// \throws std::system_error  there is no process, or there are no descriptors.
  void start(const NodeOrder& order, const NodeGo& go, const Fd& listener, const HeadSignals& signals,
             bool ignores_broken_pipes);
  [[nodiscard]] bool started() const { return child_.has_value(); }
  [[nodiscard]] bool is_running() const { return child_ && !status_; }

  void signal(int signal_number);
  /// Passes a question of the head on. One that the launcher does not take at once is dropped.
  void ask(const std::string& question);
  /// Pauses the reading of the workers' output, or goes on.
  void hold_back(bool wait);
  /// Drops the output that is held back: the head does not read it any more.
  void drop_held_back() { may_drop_ = true; }
  /// The reader of the workers' stdout has gone.
  void close_out();

 private:
  /// One stream of the child.
  struct Stream {
    NodeFrame::Kind kind;
    Fd fd = {};
    EventLoop::Watch readable = {};
  };

  void watch(Stream& stream, Fd fd);
  void read_some(Stream& stream);
  void pass_on(const Stream& stream, std::string_view bytes);
  void close(Stream& stream);
  void watch_child();
  void look_at_child();
  void limit_reading();
  void finish_when_all_is_read();

  EventLoop& loop_;
  Events events_;
  std::optional<PidFd> child_;
  std::optional<ExitStatus> status_;
  Stream out_{NodeFrame::Kind::kOut};
  Stream err_{NodeFrame::Kind::kErr};
  Stream messages_{NodeFrame::Kind::kOwnWords};  ///< frames already
  NodeFrameReader message_frames_;
  bool held_back_ = false;
  bool may_drop_ = false;
  EventLoop::Watch exit_;
  EventLoop::Timer look_;
  EventLoop::Timer read_limit_;
};

}  // namespace lrun::launcher
