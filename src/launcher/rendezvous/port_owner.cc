#include "rendezvous/port_owner.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <system_error>

#include "rendezvous/handshake.h"
#include "store/send_buffer.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

/// Reads the handshake of the other end, until the deadline or until it is known.
void read_handshake(int socket, Handshake& handshake, SteadyTime deadline) {
  char bytes[Handshake::kMostBytesOfLine];
  while (!handshake.knows_other() && handshake.refusal().empty() && poll_until(socket, POLLIN, deadline)) {
    const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
    if (count <= 0) return;
    handshake.feed({bytes, static_cast<std::size_t>(count)});
  }
}

}  // namespace

PortOwner owner_of_port(const std::string& address, std::uint16_t port, const std::string& secret, Duration limit) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  Handshake handshake(Handshake::Side::kLauncher, secret, random_nonce());
  try {
    const Fd socket = connect_to(address, port, deadline);
    SendBuffer hello;
    hello.tail() = handshake.take_output();
    if (hello.send_to(socket.get())) read_handshake(socket.get(), handshake, deadline);
  } catch (const std::system_error&) {
    return {};
  }
  // The secret does not matter: a launcher of another job is known, too.
  if (handshake.knows_other()) return {true, "other launchers use it"};
  return {false, handshake.refusal()};
}

}  // namespace lrun::launcher
