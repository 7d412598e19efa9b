#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "store/listening_socket.h"

namespace lrun::test {
using namespace launcher;

/// Speaks HTTP on a port of its own and answers as a test says; one client at a time.
class FakeEtcd {
 public:
  /// \param answer  from the whole request; empty: none is given.
  FakeEtcd(EventLoop& loop, std::function<std::string(const std::string& request)> answer)
      : loop_(loop), answer_(std::move(answer)), listener_(open_listening_socket(StoreReach::kLoopback, 0)) {
    accepting_ = loop_.on_readable(listener_.get(), [this] { accept(); });
  }

  [[nodiscard]] std::uint16_t port() const { return port_of_socket(listener_.get()); }

  /// The connection ends behind the next answer.
  void hang_up() { hangs_up_ = true; }

  /// The next connections end without a word, like those to a proxy behind which nobody listens.
  void end_connections(int count) { wordless_ = count; }
  [[nodiscard]] int connections_to_end() const { return wordless_; }

  /// Of all requests, in order.
  std::vector<std::string> paths;

  static std::string response(const std::string& body, const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  void accept() {
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) return;
    if (wordless_ > 0) {
      --wordless_;
      return;
    }
    readable_.cancel();
    client_ = std::move(client);
    readable_ = loop_.on_readable(client_.get(), [this] { read(); });
  }

  /// A request fits into one read.
  void read() {
    char bytes[4096];
    const ssize_t count = ::recv(client_.get(), bytes, sizeof bytes, 0);
    if (count <= 0) return readable_.cancel();
    const std::string request(bytes, static_cast<std::size_t>(count));
    paths.push_back(request.substr(5, request.find(' ', 5) - 5));
    const std::string answer = answer_(request);
    if (!answer.empty()) (void)::send(client_.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    if (!std::exchange(hangs_up_, false)) return;
    readable_.cancel();
    client_.reset();
  }

  EventLoop& loop_;
  std::function<std::string(const std::string&)> answer_;
  Fd listener_;
  Fd client_;
  bool hangs_up_ = false;
  int wordless_ = 0;
  EventLoop::Watch accepting_;
  EventLoop::Watch readable_;
};

}  // namespace lrun::test
