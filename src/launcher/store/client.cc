#include "store/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <system_error>

#include "store/connect.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kReceiveBytes = std::size_t{64} << 10U;
/// How long the store may take for what ends a wait, once the caller's own deadline has passed.
constexpr auto kAnswer = 10s;

/// Pauses between attempts to connect: they double, and are spread so that a thousand clients do not come at once.
class Backoff {
 public:
  /// False when the deadline would pass.
  bool pause(SteadyTime deadline) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    std::uniform_int_distribution<std::int64_t> spread(longest_.count() / 2, longest_.count());
    const auto until = std::min<SteadyTime>(deadline, now + std::chrono::milliseconds(spread(random_)));
    (void)poll_until(-1, 0, until);
    longest_ = std::min<std::chrono::milliseconds>(longest_ * 2, 1s);
    return true;
  }

 private:
  std::chrono::milliseconds longest_{10};
  std::minstd_rand random_{std::random_device{}()};
};

bool is_worth_another_attempt(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EAGAIN:
    case EADDRNOTAVAIL:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

}  // namespace

StoreClient::StoreClient(const std::string& address, std::uint16_t port, SteadyTime deadline) {
  Backoff backoff;
  while (true) {
    try {
      socket_ = connect_to(address, port, deadline);
      greet(deadline);
      return;
    } catch (const std::system_error& error) {
      if (!is_worth_another_attempt(error.code().value()) || !backoff.pause(deadline)) throw;
    }
  }
}

void StoreClient::greet(SteadyTime deadline) {
  received_.clear();
  taken_ = 0;
  nonce_ = static_cast<std::uint32_t>(::getpid());
  send({StoreCommand::kValidate, {}, kStoreMagic}, deadline);
  ping(deadline);
}

void StoreClient::ping(SteadyTime deadline) {
  send({StoreCommand::kPing, {}, nonce_}, deadline);
  const std::string answer = take(sizeof nonce_, deadline);
  if (std::memcmp(answer.data(), &nonce_, sizeof nonce_) != 0) fail(EPROTO, "the store answered another PING");
  ++nonce_;
}

void StoreClient::set(const std::string& key, const std::string& value, SteadyTime deadline) {
  send_and_confirm({StoreCommand::kSet, {key, value}}, deadline);
}

std::optional<std::string> StoreClient::get(const std::string& key, SteadyTime deadline) {
  if (!wait({key}, deadline)) return std::nullopt;
  // The key is there: what the caller bounded is over, and a value at the last moment is still a value.
  return get_now(key, std::max<SteadyTime>(deadline, std::chrono::steady_clock::now() + kAnswer));
}

bool StoreClient::wait(const std::vector<std::string>& keys, SteadyTime deadline) {
  send({StoreCommand::kWait, keys}, deadline);
  return stopped_waiting(deadline);
}

bool StoreClient::check(const std::vector<std::string>& keys, SteadyTime deadline) {
  send({StoreCommand::kCheck, keys}, deadline);
  return receive_byte(deadline) == kReady;
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t amount, SteadyTime deadline) {
  send({StoreCommand::kAdd, {key}, static_cast<std::uint64_t>(amount)}, deadline);
  return receive_number(deadline);
}

std::string StoreClient::compare_set(const std::string& key, const std::string& expected, const std::string& desired,
                                     SteadyTime deadline) {
  send({StoreCommand::kCompareSet, {key, expected, desired}}, deadline);
  return receive_string(deadline);
}

bool StoreClient::delete_key(const std::string& key, SteadyTime deadline) {
  send({StoreCommand::kDeleteKey, {key}}, deadline);
  return receive_number(deadline) > 0;
}

std::string StoreClient::get_now(const std::string& key, SteadyTime deadline) {
  send({StoreCommand::kGet, {key}}, deadline);
  return receive_string(deadline);
}

void StoreClient::append(const std::string& key, const std::string& value, SteadyTime deadline) {
  send_and_confirm({StoreCommand::kAppend, {key, value}}, deadline);
}

std::vector<std::string> StoreClient::multi_get_now(const std::vector<std::string>& keys, SteadyTime deadline) {
  send({StoreCommand::kMultiGet, keys}, deadline);
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(receive_string(deadline));
  return values;
}

void StoreClient::multi_set(const std::vector<std::pair<std::string, std::string>>& pairs, SteadyTime deadline) {
  StoreRequest request{StoreCommand::kMultiSet};
  for (const auto& [key, value] : pairs) request.strings.insert(request.strings.end(), {key, value});
  send_and_confirm(request, deadline);
}

std::int64_t StoreClient::num_keys(SteadyTime deadline) {
  send({StoreCommand::kNumKeys}, deadline);
  return receive_number(deadline);
}

std::vector<std::string> StoreClient::list_keys(SteadyTime deadline) {
  send({StoreCommand::kListKeys}, deadline);
  std::vector<std::string> keys;
  for (std::int64_t left = receive_number(deadline); left > 0; --left) keys.push_back(receive_string(deadline));
  return keys;
}

void StoreClient::queue_push(const std::string& key, const std::string& value, SteadyTime deadline) {
  send_and_confirm({StoreCommand::kQueuePush, {key, value}}, deadline);
}

std::optional<std::string> StoreClient::queue_pop_now(const std::string& key, SteadyTime deadline) {
  send({StoreCommand::kQueuePop, {key}}, deadline);
  if (receive_number(deadline) <= 0) return std::nullopt;
  return receive_string(deadline);
}

std::int64_t StoreClient::queue_length(const std::string& key, SteadyTime deadline) {
  send({StoreCommand::kQueueLength, {key}}, deadline);
  return receive_number(deadline);
}

bool StoreClient::barrier(const std::string& key, std::int64_t world_size, SteadyTime deadline) {
  send({StoreCommand::kBarrier, {key}, static_cast<std::uint64_t>(world_size)}, deadline);
  return stopped_waiting(deadline);
}

bool StoreClient::stopped_waiting(SteadyTime deadline) {
  if (has_received(1, deadline)) {
    if (receive_byte(deadline) != kStopWaiting) fail(EPROTO, "the store did not answer a wait");
    return true;
  }
  const SteadyTime answer_by = std::chrono::steady_clock::now() + kAnswer;
  send({StoreCommand::kCancelWait}, answer_by);
  // The end of the wait may have crossed the request to cancel it; it then comes first.
  const bool stopped = receive_byte(answer_by) == kStopWaiting;
  if (stopped && receive_byte(answer_by) != kWaitCanceled) fail(EPROTO, "the store did not cancel a wait");
  return stopped;
}

void StoreClient::send_and_confirm(const StoreRequest& request, SteadyTime deadline) {
  send(request, deadline);
  ping(deadline);
}

void StoreClient::send(const StoreRequest& request, SteadyTime deadline) {
  std::string bytes;
  append_request(bytes, request);
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t count = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      left.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!poll_until(socket_.get(), POLLOUT, deadline)) fail(ETIMEDOUT, "the store takes no more requests");
    } else if (errno != EINTR) {
      fail(errno, "cannot send to the store");
    }
  }
}

std::uint8_t StoreClient::receive_byte(SteadyTime deadline) { return static_cast<std::uint8_t>(take(1, deadline)[0]); }

std::int64_t StoreClient::receive_number(SteadyTime deadline) {
  std::int64_t number = 0;
  const std::string bytes = take(sizeof number, deadline);
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::string StoreClient::receive_string(SteadyTime deadline) {
  const auto size = static_cast<std::uint64_t>(receive_number(deadline));
  if (size > kMaxMessageBytes) fail(EPROTO, "the store announced a value of " + std::to_string(size) + " bytes");
  return take(static_cast<std::size_t>(size), deadline);
}

std::string StoreClient::take(std::size_t size, SteadyTime deadline) {
  if (!has_received(size, deadline)) fail(ETIMEDOUT, "the store does not answer");
  std::string bytes = received_.substr(taken_, size);
  taken_ += size;
  if (taken_ == received_.size()) {
    received_.clear();
    taken_ = 0;
  }
  return bytes;
}

bool StoreClient::has_received(std::size_t size, SteadyTime deadline) {
  while (received_.size() - taken_ < size) {
    if (!poll_until(socket_.get(), POLLIN, deadline)) return false;
    char bytes[kReceiveBytes];
    const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (count > 0) {
      received_.append(bytes, static_cast<std::size_t>(count));
    } else if (count == 0) {
      fail(ECONNRESET, "the store closed the connection");
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      fail(errno, "cannot read from the store");
    }
  }
  return true;
}

void StoreClient::fail(int error, const std::string& what) {
  socket_.reset();  // requests and answers are no longer in step
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace lrun::launcher
