// In: connections that others have accepted, and their requests. Out: the answers. StoreServer has one for Horovod's
// ranks, RunMetrics one for those who collect metrics.
#include "store/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "store/http_answer.h"
#include "store/send_buffer.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kHttpReadBytes = std::size_t{64} << 10U;
/// Each connection may hold this much, whatever the others hold: more than a rank sends.
constexpr std::size_t kAlwaysHeldBytes = std::size_t{16} << 10U;

}  // namespace

struct HttpServer::Connection {
  explicit Connection(Fd descriptor) : socket(std::move(descriptor)) {}

  Fd socket;
  SteadyTime since = steady_now();
  HttpRequestReader request;
  SendBuffer answer;
  bool answered = false;
  std::size_t held_bytes = 0;
};

HttpServer::HttpServer(EventLoop& loop, Answer answer,
                       std::function<void(int socket, const std::string& reason)> refused)
    : loop_(loop),
      answer_(std::move(answer)),
      refused_(std::move(refused)),
      poll_(loop_, [this](std::uint64_t id, SocketEvents) { serve_ready(id); }) {}

HttpServer::~HttpServer() = default;

void HttpServer::add_connection(Fd socket, std::string_view bytes) {
  auto connection = std::make_unique<Connection>(std::move(socket));
  if (!serve(*connection, bytes)) {  // most requests arrive in one piece, and their answers are sent at once
    hold(*connection, 0);
    return;
  }
  const std::uint64_t id = ++last_id_;
  poll_.add(connection->socket.get(), id, {.readable = !connection->answered, .writable = connection->answered});
  connections_.emplace(id, std::move(connection));
  arm();
}

bool HttpServer::make_room() {
  if (connections_.empty()) return false;
  close(connections_.begin()->first);
  return true;
}

void HttpServer::close_all() {
  while (make_room()) continue;
}

void HttpServer::serve_ready(std::uint64_t id) {
  const auto entry = connections_.find(id);
  if (entry == connections_.end()) return;
  Connection& connection = *entry->second;
  const bool was_answered = connection.answered;
  const bool goes_on = was_answered ? connection.answer.send_to(connection.socket.get()) && !connection.answer.empty()
                                    : read_from(connection);
  if (!goes_on) return close(id);
  if (connection.answered && !was_answered) poll_.change(connection.socket.get(), id, {.writable = true});
}

/// \return false when the connection is to be closed.
bool HttpServer::read_from(Connection& connection) {
  char bytes[kHttpReadBytes];
  const ssize_t count = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
  if (count > 0) return serve(connection, {bytes, static_cast<std::size_t>(count)});
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/// \return false when the connection is to be closed: everything is sent, or the client is gone.
bool HttpServer::serve(Connection& connection, std::string_view bytes) {
  std::optional<HttpRequest> request = connection.request.feed(bytes);
  const std::string& reason = connection.request.refusal();
  if (!request && reason.empty()) return hold(connection, connection.held_bytes + bytes.size());
  if (!reason.empty()) refused_(connection.socket.get(), "not an HTTP request: " + reason);
  connection.answer.tail() = request ? answer_(*std::move(request)) : http_answer("400 Bad Request");
  connection.answered = true;
  return connection.answer.send_to(connection.socket.get()) && !connection.answer.empty() &&
         hold(connection, connection.answer.size());
}

/// \return false when that is too much: the connection is to be closed.
bool HttpServer::hold(Connection& connection, std::size_t bytes) {
  held_bytes_ = held_bytes_ - connection.held_bytes + bytes;
  connection.held_bytes = bytes;
  if (bytes <= kAlwaysHeldBytes || held_bytes_ <= kMostHeldBytes) return true;
  refused_(connection.socket.get(),
           "unfinished requests and unread answers take more than " + std::to_string(kMostHeldBytes) + " bytes");
  return false;
}

void HttpServer::close(std::uint64_t id) {
  const auto entry = connections_.find(id);
  if (entry == connections_.end()) return;
  poll_.remove(entry->second->socket.get());
  hold(*entry->second, 0);
  connections_.erase(entry);
  if (connections_.empty()) patience_.cancel();
}

void HttpServer::close_slow_ones() {
  while (!connections_.empty() && steady_now() - connections_.begin()->second->since >= kPatience) {
    const auto& [id, connection] = *connections_.begin();
    refused_(connection->socket.get(),
             connection->answered ? "it does not read its answer" : "its request is unfinished");
    close(id);
  }
  arm();
}

void HttpServer::arm() {
  if (connections_.empty() || patience_.armed()) return;
  const auto left = std::chrono::ceil<Duration>(connections_.begin()->second->since + kPatience - steady_now());
  patience_ = loop_.after(std::max(left, Duration::zero()), [this] { close_slow_ones(); });
}

}  // namespace lrun::launcher
