#include "support/store_client.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>

#include "wire/connect.h"

namespace lrun {
namespace {

using namespace std::chrono_literals;

/// How long the store may take to answer a cancelled wait, once the caller's own deadline has passed.
constexpr auto kAnswer = 10s;

SteadyTime answer_by(SteadyTime deadline) {
  return std::max<SteadyTime>(deadline, std::chrono::steady_clock::now() + kAnswer);
}

bool is_worth_another_attempt(int error) {
  return error == ECONNREFUSED || error == ECONNRESET || error == EPIPE || error == EADDRNOTAVAIL;
}

StoreConnection connect_until(const std::string& address, std::uint16_t port, SteadyTime deadline) {
  while (true) {
    try {
      return {connect_to(address, port, deadline), deadline};
    } catch (const std::system_error& error) {
      const bool over = std::chrono::steady_clock::now() >= deadline;
      if (over || !is_worth_another_attempt(error.code().value())) throw;
    }
    (void)poll_until(-1, 0, std::min<SteadyTime>(deadline, std::chrono::steady_clock::now() + 10ms));
  }
}

}  // namespace

StoreClient::StoreClient(const std::string& address, std::uint16_t port, SteadyTime deadline)
    : connection_(connect_until(address, port, deadline)) {}

void StoreClient::set(const std::string& key, const std::string& value, SteadyTime deadline) {
  send_and_confirm({StoreCommand::kSet, {key, value}}, deadline);
}

std::optional<std::string> StoreClient::get(const std::string& key, SteadyTime deadline) {
  if (!wait({key}, deadline)) return std::nullopt;
  // The key is there: the caller's wait is over, and a value that came at the last moment is a value.
  return get_now(key, answer_by(deadline));
}

bool StoreClient::wait(const std::vector<std::string>& keys, SteadyTime deadline) {
  connection_.send({StoreCommand::kWait, keys}, deadline);
  return stopped_waiting(deadline);
}

bool StoreClient::check(const std::vector<std::string>& keys, SteadyTime deadline) {
  connection_.send({StoreCommand::kCheck, keys}, deadline);
  return connection_.receive_byte(deadline) == kReady;
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t amount, SteadyTime deadline) {
  connection_.send({StoreCommand::kAdd, {key}, static_cast<std::uint64_t>(amount)}, deadline);
  return connection_.receive_number(deadline);
}

std::string StoreClient::compare_set(const std::string& key, const std::string& expected, const std::string& desired,
                                     SteadyTime deadline) {
  connection_.send({StoreCommand::kCompareSet, {key, expected, desired}}, deadline);
  return connection_.receive_string(deadline);
}

bool StoreClient::delete_key(const std::string& key, SteadyTime deadline) {
  connection_.send({StoreCommand::kDeleteKey, {key}}, deadline);
  return connection_.receive_number(deadline) > 0;
}

std::string StoreClient::get_now(const std::string& key, SteadyTime deadline) {
  connection_.send({StoreCommand::kGet, {key}}, deadline);
  return connection_.receive_string(deadline, kMaxMessageBytes);
}

void StoreClient::append(const std::string& key, const std::string& value, SteadyTime deadline) {
  send_and_confirm({StoreCommand::kAppend, {key, value}}, deadline);
}

std::vector<std::string> StoreClient::multi_get_now(const std::vector<std::string>& keys, SteadyTime deadline) {
  connection_.send({StoreCommand::kMultiGet, keys}, deadline);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    values.push_back(connection_.receive_string(deadline, kMaxMessageBytes));
  }
  return values;
}

void StoreClient::multi_set(const std::vector<std::pair<std::string, std::string>>& pairs, SteadyTime deadline) {
  StoreRequest request{StoreCommand::kMultiSet};
  for (const auto& [key, value] : pairs) request.strings.insert(request.strings.end(), {key, value});
  send_and_confirm(request, deadline);
}

std::int64_t StoreClient::num_keys(SteadyTime deadline) {
  connection_.send({StoreCommand::kNumKeys}, deadline);
  return connection_.receive_number(deadline);
}

std::vector<std::string> StoreClient::list_keys(SteadyTime deadline) {
  connection_.send({StoreCommand::kListKeys}, deadline);
  std::vector<std::string> keys;
  for (std::int64_t left = connection_.receive_number(deadline); left > 0; --left) {
    keys.push_back(connection_.receive_string(deadline));
  }
  return keys;
}

void StoreClient::queue_push(const std::string& key, const std::string& value, SteadyTime deadline) {
  send_and_confirm({StoreCommand::kQueuePush, {key, value}}, deadline);
}

std::optional<std::string> StoreClient::queue_pop_now(const std::string& key, SteadyTime deadline) {
  connection_.send({StoreCommand::kQueuePop, {key}}, deadline);
  if (connection_.receive_number(deadline) <= 0) return std::nullopt;
  return connection_.receive_string(deadline);
}

std::int64_t StoreClient::queue_length(const std::string& key, SteadyTime deadline) {
  connection_.send({StoreCommand::kQueueLength, {key}}, deadline);
  return connection_.receive_number(deadline);
}

bool StoreClient::barrier(const std::string& key, std::int64_t world_size, SteadyTime deadline) {
  connection_.send({StoreCommand::kBarrier, {key}, static_cast<std::uint64_t>(world_size)}, deadline);
  return stopped_waiting(deadline);
}

void StoreClient::ping(SteadyTime deadline) {
  connection_.send({StoreCommand::kPing, {}, ++pings_}, deadline);
  std::uint32_t answer = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    answer |= std::uint32_t{static_cast<unsigned char>(connection_.receive_byte(deadline))} << shift;
  }
  if (answer != pings_) throw std::runtime_error("the store answered another ping");
}

bool StoreClient::stopped_waiting(SteadyTime deadline) {
  if (poll_until(connection_.fd(), POLLIN, deadline)) {
    if (connection_.receive_byte(answer_by(deadline)) == kStopWaiting) return true;
    throw std::runtime_error("the store did not answer a wait");
  }
  const SteadyTime limit = answer_by(deadline);
  connection_.send({StoreCommand::kCancelWait}, limit);
  // The end of the wait may have crossed the request to cancel it, and then comes first.
  const bool stopped = connection_.receive_byte(limit) == kStopWaiting;
  if (stopped && connection_.receive_byte(limit) != kWaitCanceled) {
    throw std::runtime_error("the store did not cancel a wait");
  }
  return stopped;
}

/// The store sends no answer to `request`; one to a ping behind it says that it was carried out.
void StoreClient::send_and_confirm(const StoreRequest& request, SteadyTime deadline) {
  connection_.send(request, deadline);
  ping(deadline);
}

}  // namespace lrun
