#pragma once

#include <cstdint>
#include <functional>

#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun::launcher {

/// What to be told of. A socket's error or end counts as everything that is asked for.
struct SocketEvents {
  bool readable = false;
  bool writable = false;

  bool operator==(const SocketEvents&) const = default;
};

/// Many sockets behind one watch of an event loop. A watch of the loop costs system calls for each event and three more
/// for each descriptor; here a socket costs one when it comes, and one when it goes or when what it waits for changes.
class SocketPoll {
 public:
  /// \param loop   must outlive this.
  /// \param ready  called with the name that a socket was added with. May add, change and remove any socket; one that
  ///               was removed a moment ago may still be told of.
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
