#include "runtime/launch/port_reservation.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace lrun::detail {
namespace {

[[noreturn]] void throw_socket_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

PortReservation::PortReservation() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (!socket_) throw_socket_error("socket");
  const int yes = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  void* const raw = &address;
  if (::bind(socket_.get(), static_cast<sockaddr*>(raw), size) != 0) throw_socket_error("bind");
  if (::getsockname(socket_.get(), static_cast<sockaddr*>(raw), &size) != 0) throw_socket_error("getsockname");
  port_ = ntohs(address.sin_port);
}

}  // namespace lrun::detail
