#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/fd.h"
#include "store/http_request.h"
#include "store/socket_poll.h"

namespace lrun::launcher {

/// Answers requests of HTTP/1.1 on connections that were accepted elsewhere. Each connection is for one request. Never
/// blocks. A connection is closed when request and answer take longer than kPatience, or when
/// it makes the unfinished requests and unread answers of all connections exceed kMostHeldBytes. One thread.
class HttpServer {
 public:
  /// Executes a request. \return the answer as its client gets it: http_answer()
  using Answer = std::function<std::string(HttpRequest request)>;

  /// \param loop     must outlive the server.
  /// \param refused  gets a socket just before it is closed, and why. Must not call the server.
  HttpServer(EventLoop& loop, Answer answer, std::function<void(int socket, const std::string& reason)> refused);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// A request of HTTP begins with the capital letter of its method.
  static bool begins_request(char byte) { return byte >= 'A' && byte <= 'Z'; }

  /// Serves a nonblocking connection of which `bytes` were read.
  void add_connection(Fd socket, std::string_view bytes);

  /// Closes the oldest connection. \return false when there is none.
  bool make_room();

  void close_all();

  [[nodiscard]] std::size_t num_connections() const { return connections_.size(); }

  static constexpr Duration kPatience{10'000};
  static constexpr std::size_t kMostHeldBytes = std::size_t{64} << 20U;

 private:
  struct Connection;

  void serve_ready(std::uint64_t id);
  bool read_from(Connection& connection);
  bool serve(Connection& connection, std::string_view bytes);
  bool hold(Connection& connection, std::size_t bytes);
  void close(std::uint64_t id);
  void close_slow_ones();
  void arm();

  EventLoop& loop_;
  Answer answer_;
  std::function<void(int socket, const std::string& reason)> refused_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;  // the oldest comes first
  std::uint64_t last_id_ = 0;
  std::size_t held_bytes_ = 0;  // of all connections
  SocketPoll poll_;
  EventLoop::Timer patience_;  // only while there are connections
};

}  // namespace lrun::launcher
