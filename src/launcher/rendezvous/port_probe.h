#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/duration.h"
#include "base/event_loop.h"
#include "store/socket_connector.h"

namespace lrun::launcher {

/// Asks a host whether a process still listens at a port. A refused connection proves that the host's kernel lives and
/// that the process which had listened there is gone. One question at a time; never blocks. One thread.
class PortProbe {
 public:
  explicit PortProbe(EventLoop& loop) : loop_(loop), connector_(loop) {}
  PortProbe(const PortProbe&) = delete;
  PortProbe& operator=(const PortProbe&) = delete;

  /// \param address   numeric
  /// \param timeout  for an answer. While a connection is accepted it is tried again: a process that was killed may
  ///                  close the socket at which it listens last.
  /// \param done      is called by the loop, once: whether the connection was refused
  void ask(const std::string& address, std::uint16_t port, Duration timeout, std::function<void(bool refused)> done);
  /// `done` is not called any more.
  void cancel();

 private:
  void connect();
  void answered(bool refused);

  EventLoop& loop_;
  SocketConnector::Target target_;
  std::function<void(bool refused)> done_;
  SocketConnector connector_;
  EventLoop::Timer limit_;
  EventLoop::Timer again_;
};

}  // namespace lrun::launcher
