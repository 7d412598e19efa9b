// In: commands of clients. Out: the answers of a living run. RunRecord, WaitingRecord and HeadRecord make one.
#include "inspect/control_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "inspect/control_address.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostClients = 16;
constexpr std::size_t kMostCommandBytes = 4096;
constexpr Duration kClientDeadline(10'000);
constexpr Duration kAcceptAgain(1000);

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

Fd listen_in(const Folder& folder) {
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) fail("socket");
  const sockaddr_un address = control_address(folder.fd());
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), static_cast<int>(kMostClients)) != 0) {
    const bool has_proc = errno != ENOENT || ::access("/proc/self/fd", F_OK) == 0;
    fail(has_proc ? "control socket in '" + folder.path().string() + "'" : "its control socket needs /proc");
  }
  return listener;
}

}  // namespace

ControlSocket::ControlSocket(EventLoop& loop, const Folder& folder, Answer answer)
    : loop_(loop), folder_(folder), answer_(std::move(answer)), listener_(listen_in(folder)) {
  accept_clients();
}

ControlSocket::~ControlSocket() { ::unlinkat(folder_.fd(), kControlName, 0); }

void ControlSocket::accept_clients() {
  accepting_ = loop_.on_readable(listener_.get(), [this] { accept_client(); });
}

void ControlSocket::accept_client() {
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket && (errno == EMFILE || errno == ENFILE)) {
    // The client stays in the queue and keeps the socket readable: look again when descriptors may be free.
    accepting_.cancel();
    again_ = loop_.after(kAcceptAgain, [this] { accept_clients(); });
  }
  if (!socket || clients_.size() >= kMostClients) return;  // one too many is closed at once
  const int id = ++last_id_;
  const int fd = socket.get();
  Client& client = clients_[id];
  client.socket = std::move(socket);
  client.readable = loop_.on_readable(fd, [this, id] { read_from(id); });
  client.deadline = loop_.after(kClientDeadline, [this, id] { clients_.erase(id); });
}

void ControlSocket::read_from(int id) {
  Client& client = clients_.at(id);
  char buffer[1024];
  const ssize_t count = ::recv(client.socket.get(), buffer, sizeof buffer, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) client.received.append(buffer, static_cast<std::size_t>(count));
  const auto end = client.received.find('\n');
  if (end == std::string::npos) {
    if (count <= 0 || client.received.size() > kMostCommandBytes) clients_.erase(id);
    return;
  }
  client.readable.cancel();
  client.deadline.cancel();  // an answer has a deadline of its own
  const std::string command = client.received.substr(0, end);
  answer_(command, [this, id, lives = std::weak_ptr(lives_)](const std::string& line) {
    if (!lives.expired()) reply_to(id, line);
  });
}

void ControlSocket::reply_to(int id, const std::string& line) {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  client->second.reply = line + "\n";
  client->second.deadline = loop_.after(kClientDeadline, [this, id] { clients_.erase(id); });
  write_to(id);
}

/// The answer about a thousand ranks is larger than the socket's buffer: the rest follows when the client has read.
void ControlSocket::write_to(int id) {
  Client& client = clients_.at(id);
  const ssize_t sent = ::send(client.socket.get(), client.reply.data(), client.reply.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    clients_.erase(id);
    return;
  }
  client.reply.erase(0, sent > 0 ? static_cast<std::size_t>(sent) : 0);
  if (client.reply.empty()) {
    clients_.erase(id);
  } else if (!client.writable.armed()) {
    client.writable = loop_.on_writable(client.socket.get(), [this, id] { write_to(id); });
  }
}

}  // namespace lrun::launcher
