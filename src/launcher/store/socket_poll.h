#pragma once

#include <cstdint>
#include <functional>

#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun::launcher {

/// The events to wait for. A socket's error or end counts as every event that was asked for.
struct SocketEvents {
  bool readable = false;
  bool writable = false;

  bool operator==(const SocketEvents&) const = default;
};

/// Many sockets behind one watch of an event loop. A watch of the loop takes system calls for each event and three more
/// for each descriptor; here a socket takes one when it is added, changed or removed.
class SocketPoll {
 public:
  /// \param loop   must outlive this.
  /// \param ready  called with the name that a socket was added with. May add, change and remove any socket. May be
  ///               called once more for a socket that was removed just before.
  /// \throws std::system_error  EMFILE and others.
  SocketPoll(EventLoop& loop, std::function<void(std::uint64_t name, SocketEvents events)> ready);

  /// \throws std::system_error  ENOSPC, ENOMEM.
  void add(int socket, std::uint64_t name, SocketEvents events);
  void change(int socket, std::uint64_t name, SocketEvents events);
  /// Before the socket is closed or given away.
  void remove(int socket);

 private:
  void take_turn();

  Fd epoll_;
  std::function<void(std::uint64_t name, SocketEvents events)> ready_;
  EventLoop::Watch watch_;
};

}  // namespace lrun::launcher
