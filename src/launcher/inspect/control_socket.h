#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/folder.h"

namespace lrun::launcher {

/// The control socket of a living run, `control.sock` in its folder: one command a line in, one line of JSON out.
///
/// The folder's mode (0700) decides who may connect. At most 16 clients at once and 4 KiB a command; a client that does
/// not finish its line, or does not read its answer once there is one, in ten seconds is dropped. It does nothing while
/// it has no client.
class ControlSocket {
 public:
  /// Takes the answer, a line of JSON without newline; once, now or later. Does nothing when the client is gone.
  using Reply = std::function<void(const std::string& line)>;
  /// A command without its newline. It has to be replied to. Called on the loop's thread.
  using Answer = std::function<void(std::string_view command, const Reply& reply)>;

  /// \param folder  must outlive the socket.
  /// \throws std::system_error  the socket cannot be made there.
  ControlSocket(EventLoop& loop, const Folder& folder, Answer answer);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

 private:
  struct Client {
    Fd socket;
    std::string received;
    std::string reply;  ///< the part that is not sent yet
    EventLoop::Watch readable;
    EventLoop::Watch writable;
    EventLoop::Timer deadline;
  };

  void accept_clients();
  void accept_client();
  void read_from(int id);
  void reply_to(int id, const std::string& line);
  void write_to(int id);

  EventLoop& loop_;
  const Folder& folder_;
  Answer answer_;
  Fd listener_;
  EventLoop::Watch accepting_;
  EventLoop::Timer again_;  // only while descriptors have run out
  std::map<int, Client> clients_;
  int last_id_ = 0;
  std::shared_ptr<int> lives_ = std::make_shared<int>();  ///< for replies that come later
};

}  // namespace lrun::launcher
