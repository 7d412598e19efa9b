#include "faults/link_proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace lrun::test {
namespace {

constexpr int kLookAgainMs = 20;  // for a cut, a heal and the end

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Reads the bytes that are there now; false at the end of the connection. The buffer of a loopback connection is large
/// enough for the messages of launchers.
bool pass_on(const Fd& from, const Fd& to) {
  char bytes[65536];
  const ssize_t count = ::recv(from.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  return ::send(to.get(), bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL) == count;
}

}  // namespace

LinkProxy::LinkProxy(std::uint16_t rendezvous)
    : rendezvous_(rendezvous), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "no port for a proxy");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

LinkProxy::~LinkProxy() {
  end_ = true;
  thread_.join();
}

void LinkProxy::run() {
  while (!end_) {
    const Cut cut = cut_;
    std::vector<pollfd> polled;
    const auto watch = [&](const Fd& fd, bool wanted) {
      polled.push_back({wanted ? fd.get() : -1, POLLIN, 0});  // -1: not looked at
    };
    watch(listener_, cut == Cut::kNone);
    for (const Connection& connection : connections_) {
      watch(connection.launcher, cut == Cut::kNone || cut == Cut::kFromLeader);
      watch(connection.rendezvous, cut == Cut::kNone || cut == Cut::kToLeader);
    }
    if (::poll(polled.data(), polled.size(), kLookAgainMs) <= 0 || cut_ != cut) continue;
    std::size_t at = 1;
    for (Connection& connection : connections_) {
      const bool from_launcher = polled[at++].revents != 0;
      const bool from_rendezvous = polled[at++].revents != 0;
      if (from_launcher && !pass_on(connection.launcher, connection.rendezvous)) connection.over = true;
      if (from_rendezvous && !pass_on(connection.rendezvous, connection.launcher)) connection.over = true;
    }
    connections_.remove_if([](const Connection& connection) { return connection.over; });
    if (polled.front().revents != 0) take_connection();
  }
}

/// A client that connects while nobody listens at the rendezvous finds the connection closed.
void LinkProxy::take_connection() {
  Fd launcher(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  Fd rendezvous(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(rendezvous_);
  if (!launcher || !rendezvous) return;
  if (::connect(rendezvous.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  connections_.push_back({std::move(launcher), std::move(rendezvous)});
}

}  // namespace lrun::test
