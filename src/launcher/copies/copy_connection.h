#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "copies/copy_message.h"
#include "copies/file_stream.h"
#include "rendezvous/handshake.h"
#include "store/send_buffer.h"

namespace lrun::launcher {

/// A connection between the copiers of two nodes: the handshake of launchers, then messages and files both ways. Never
/// blocks. One thread.
class CopyConnection {
 public:
  /// `sent` and `broken` may destroy the connection.
  struct Events {
    std::function<void()> ready;  ///< the other end is a copier of this job
    std::function<void(const CopyItem& item)> received;
    std::function<void()> sent;  ///< the files of send_files() are with the kernel
    std::function<void(const std::string& why)> broken;
  };

  /// \param socket  connected and nonblocking
  /// \param secret  that the other end has to know; empty: none
  CopyConnection(EventLoop& loop, Fd socket, Handshake::Side side, const std::string& secret, Events events);
  CopyConnection(const CopyConnection&) = delete;
  CopyConnection& operator=(const CopyConnection&) = delete;

  /// Once it is ready.
  void send(const CopyMessage& message);
  /// The same; no message or file may be sent until `sent` was called.
  void send_files(FileStream files);
  [[nodiscard]] bool is_ready() const { return handshake_.done(); }
  /// Until `sent` is called.
  [[nodiscard]] bool is_sending_files() const { return is_sending_; }
  /// The last files that were sent.
  [[nodiscard]] const std::vector<std::string>& changed() const { return changed_; }

 private:
  void read();
  void take(std::string_view bytes);
  void flush();
  void break_off(const std::string& why);

  EventLoop& loop_;
  Fd socket_;
  Handshake handshake_;
  Events events_;
  CopyDecoder decoder_;
  SendBuffer out_;
  std::optional<FileStream> files_;
  bool is_sending_ = false;
  std::vector<std::string> changed_;
  EventLoop::Watch readable_;
  EventLoop::Watch writable_;
  EventLoop::Timer report_;  ///< of `sent` or `broken`, when nothing of this object is at work
};

}  // namespace lrun::launcher
