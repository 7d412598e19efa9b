// In: requests of a rank or a test. Out: bytes of the TCPStore protocol over one socket, and the parts of its answers.
// Called by liblrun's StoreClient, which finds the server and translates errors.
#include "wire/store_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "wire/connect.h"

namespace lrun::inline core {

StoreConnection::StoreConnection(Fd socket, SteadyTime deadline) : socket_(std::move(socket)) {
  // In one piece, as torch's own server wants it. From the nonce our server learns which process has connected.
  const auto nonce = static_cast<std::uint32_t>(::getpid());
  std::string handshake;
  append_request(handshake, {StoreCommand::kValidate, {}, kStoreMagic});
  append_request(handshake, {StoreCommand::kPing, {}, nonce});
  send_bytes(handshake, deadline);
  const std::string answer = receive(sizeof nonce, deadline);
  if (std::memcmp(answer.data(), &nonce, sizeof nonce) != 0) fail(EPROTO, "not a TCPStore");
}

void StoreConnection::set(const std::string& key, const std::string& value, SteadyTime deadline) {
  send({StoreCommand::kSet, {key, value}}, deadline);
}

bool StoreConnection::check(const std::string& key, SteadyTime deadline) {
  send({StoreCommand::kCheck, {key}}, deadline);
  return receive_byte(deadline) == kReady;
}

std::string StoreConnection::get(const std::string& key, SteadyTime deadline) {
  send({StoreCommand::kGet, {key}}, deadline);
  return receive_string(deadline);
}

void StoreConnection::send(const StoreRequest& request, SteadyTime deadline) {
  std::string bytes;
  append_request(bytes, request);
  send_bytes(bytes, deadline);
}

char StoreConnection::receive_byte(SteadyTime deadline) { return receive(1, deadline)[0]; }

std::int64_t StoreConnection::receive_number(SteadyTime deadline) {
  std::int64_t number = 0;
  std::memcpy(&number, receive(sizeof number, deadline).data(), sizeof number);
  return number;
}

std::string StoreConnection::receive_string(SteadyTime deadline, std::uint64_t most_bytes) {
  const auto size = static_cast<std::uint64_t>(receive_number(deadline));
  if (size > most_bytes) fail(EPROTO, "a value of " + std::to_string(size) + " bytes");
  return receive(static_cast<std::size_t>(size), deadline);
}

void StoreConnection::send_bytes(std::string_view bytes, SteadyTime deadline) {
  if (!socket_) throw std::system_error(ENOTCONN, std::generic_category(), "given up");
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      if (!poll_until(socket_.get(), POLLOUT, deadline)) fail(ETIMEDOUT, "it takes no request");
    } else if (errno != EINTR) {
      fail(errno, "send");
    }
  }
}

std::string StoreConnection::receive(std::size_t size, SteadyTime deadline) {
  // Grows with the bytes that came: a server may announce more than it sends.
  constexpr std::size_t kStep = std::size_t{1} << 20U;
  std::string bytes;
  for (std::size_t received = 0; received < size;) {
    if (received == bytes.size()) bytes.resize(std::min(size, received + kStep));
    const ssize_t count = ::recv(socket_.get(), bytes.data() + received, bytes.size() - received, 0);
    if (count > 0) {
      received += static_cast<std::size_t>(count);
    } else if (count == 0) {
      fail(ECONNRESET, "it has gone");
    } else if (errno == EAGAIN) {
      if (!poll_until(socket_.get(), POLLIN, deadline)) fail(ETIMEDOUT, "it does not answer");
    } else if (errno != EINTR) {
      fail(errno, "receive");
    }
  }
  return bytes;
}

void StoreConnection::fail(int error, const std::string& what) {
  socket_.reset();  // a late answer would be taken for the answer to the next request
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace lrun::inline core
