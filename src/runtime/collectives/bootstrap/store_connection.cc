#include "runtime/collectives/bootstrap/store_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "runtime/collectives/bootstrap/backoff.h"
#include "runtime/collectives/bootstrap/connect_to_host.h"
#include "runtime/collectives/bootstrap/local_address.h"

namespace lrun::detail {
namespace {

// The protocol: one byte of command, then its arguments; integers in host order, a string as its u64 length and bytes.
enum Command : char { kValidate = 0, kSet = 1, kGet = 3, kCheck = 5, kPing = 13 };

constexpr std::uint32_t kMagic = 0x3C85F7CE;
constexpr char kReady = 0;
constexpr std::uint64_t kLongestValue = 8 << 20;

template <typename Integer>
std::string bytes_of(Integer value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <typename Integer>
Integer integer_of(const std::string& bytes) {
  Integer value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string string_bytes(const std::string& text) { return bytes_of<std::uint64_t>(text.size()) + text; }

/// TCPStore puts this in front of all keys, so that it sees ours under the names that they have here.
std::string key_bytes(const std::string& key) { return string_bytes("/" + key); }

}  // namespace

StoreConnection::StoreConnection(const std::string& host, std::uint16_t port, SteadyTime deadline) {
  for (Backoff backoff(deadline, std::chrono::milliseconds(50));; backoff.sleep()) {
    try {
      socket_ = connect_to_host(host, port, deadline);
      greet(deadline);
      return;
    } catch (const std::system_error& error) {
      if (backoff.is_over() || error.code() == std::errc::protocol_error) throw;
    }
  }
}

/// A server hears from the nonce of the ping which process the connection is of.
void StoreConnection::greet(SteadyTime deadline) {
  const auto nonce = static_cast<std::uint32_t>(::getpid());
  send(std::string(1, kValidate) + bytes_of(kMagic) + std::string(1, kPing) + bytes_of(nonce), deadline);
  if (receive(sizeof nonce, deadline) != bytes_of(nonce)) give_up(EPROTO, "not a TCPStore");
}

void StoreConnection::set(const std::string& key, const std::string& value, SteadyTime deadline) {
  send(std::string(1, kSet) + key_bytes(key) + string_bytes(value), deadline);
}

bool StoreConnection::check(const std::string& key, SteadyTime deadline) {
  send(std::string(1, kCheck) + bytes_of<std::uint64_t>(1) + key_bytes(key), deadline);
  return receive(1, deadline)[0] == kReady;
}

std::string StoreConnection::get(const std::string& key, SteadyTime deadline) {
  send(std::string(1, kGet) + key_bytes(key), deadline);
  const auto size = integer_of<std::uint64_t>(receive(sizeof(std::uint64_t), deadline));
  if (size > kLongestValue) give_up(EPROTO, "a value of " + std::to_string(size) + " bytes");
  return receive(size, deadline);
}

std::string StoreConnection::local_address() const {
  if (!socket_) throw std::system_error(ENOTCONN, std::generic_category(), "given up");
  return local_address_of(socket_.get());
}

void StoreConnection::send(const std::string& request, SteadyTime deadline) {
  if (!socket_) throw std::system_error(ENOTCONN, std::generic_category(), "given up");
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t count = ::send(socket_.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      if (!poll_until(socket_.get(), POLLOUT, deadline)) give_up(ETIMEDOUT, "it takes no request");
    } else if (errno != EINTR) {
      give_up(errno, "send");
    }
  }
}

std::string StoreConnection::receive(std::size_t bytes, SteadyTime deadline) {
  std::string text(bytes, '\0');
  for (std::size_t received = 0; received < bytes;) {
    const ssize_t count = ::recv(socket_.get(), text.data() + received, bytes - received, 0);
    if (count > 0) {
      received += static_cast<std::size_t>(count);
    } else if (count == 0) {
      give_up(ECONNRESET, "it has gone");
    } else if (errno == EAGAIN) {
      if (!poll_until(socket_.get(), POLLIN, deadline)) give_up(ETIMEDOUT, "it does not answer");
    } else if (errno != EINTR) {
      give_up(errno, "receive");
    }
  }
  return text;
}

void StoreConnection::give_up(int error, const std::string& what) {
  socket_.reset();  // an answer that comes later would be taken for that to the next request
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace lrun::detail
