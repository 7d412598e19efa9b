#include "store/connection_acceptor.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "store/listening_socket.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

constexpr int kAcceptsPerTurn = 64;
constexpr Duration kTryAgain = 100ms;

/// accept4 failed because of the one connection that it would have given, not because of us.
bool concerns_one_connection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
      return true;
    default:
      return false;
  }
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(EventLoop& loop, Fd listener, std::function<void(Fd socket)> accepted,
                                       std::function<void(const std::string& line)> failed)
    : loop_(loop),
      listener_(std::move(listener)),
      accepted_(std::move(accepted)),
      failed_(std::move(failed)),
      port_(port_of_socket(listener_.get())) {}

void ConnectionAcceptor::start() {
  accepting_ = loop_.on_readable(listener_.get(), [this] { accept_batch(); });
}

void ConnectionAcceptor::drop_waiting() {
  if (!accepting_.armed() && !again_.armed()) return;
  while (true) {
    const Fd dropped(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!dropped && !concerns_one_connection(errno)) return;
  }
}

void ConnectionAcceptor::stop() {
  accepting_.cancel();
  again_.cancel();
  listener_.reset();
}

void ConnectionAcceptor::accept_batch() {
  for (int accepted = 0; accepted < kAcceptsPerTurn; ++accepted) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      has_failed_ = false;
      accepted_(std::move(socket));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (!concerns_one_connection(errno)) {
      return try_again_later(errno);
    }
  }
}

void ConnectionAcceptor::try_again_later(int error) {
  if (!std::exchange(has_failed_, true)) {
    failed_("cannot accept a connection: " + std::generic_category().message(error) + "; trying again");
  }
  accepting_.cancel();
  again_ = loop_.after(kTryAgain, [this] { start(); });
}

}  // namespace lrun::launcher
