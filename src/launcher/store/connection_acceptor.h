#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun::launcher {

/// Accepts the connections of a listening socket on an event loop, a bounded number each turn. When the process has no
/// descriptors left it tries again 100 ms later: the socket stays readable meanwhile, and watching it would spin.
class ConnectionAcceptor {
 public:
  /// Accepts nothing before start().
  /// \param loop      must outlive this.
  /// \param accepted  gets each connection, nonblocking and close-on-exec.
  /// \param failed    gets one line when no connection can be accepted, and no other until one could be.
  ConnectionAcceptor(EventLoop& loop, Fd listener, std::function<void(Fd socket)> accepted,
                     std::function<void(const std::string& line)> failed);

  [[nodiscard]] std::uint16_t port() const { return port_; }

  void start();

  /// Closes the connections that wait to be accepted. No effect before start().
  void drop_waiting();

  /// Closes the listening socket: nobody can connect any more.
  void stop();

 private:
  void accept_batch();
  void try_again_later(int error);

  EventLoop& loop_;
  Fd listener_;
  std::function<void(Fd socket)> accepted_;
  std::function<void(const std::string& line)> failed_;
  std::uint16_t port_;
  EventLoop::Watch accepting_;
  EventLoop::Timer again_;   // only while descriptors have run out
  bool has_failed_ = false;  // reported, and nothing was accepted since
};

}  // namespace lrun::launcher
