#include "store/compare_set_client.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "store/connect.h"
#include "store/host_address.h"
#include "store/protocol.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
constexpr Duration kPause(100);

}  // namespace

void StoredValueReader::take(std::string_view bytes) {
  if (!is_refused()) bytes_.append(bytes);
}

std::optional<std::uint64_t> StoredValueReader::size() const {
  std::uint64_t size = 0;
  if (bytes_.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes_.data(), sizeof size);
  return size;
}

std::optional<std::string> StoredValueReader::value() const {
  const auto known = size();
  if (!known || is_refused() || bytes_.size() - sizeof *known < *known) return std::nullopt;
  return bytes_.substr(sizeof *known);
}

bool StoredValueReader::is_refused() const {
  const auto known = size();
  return known && (*known > kMostBytes || bytes_.size() - sizeof *known > *known);
}

void CompareSetClient::compare_set(const std::string& key, const std::string& expected, const std::string& desired,
                                   Duration limit, Told told) {
  std::string request;
  append_request(request, {StoreCommand::kCompareSet, {key, expected, desired}});
  pending_.push_back({std::move(request), steady_now() + limit, std::move(told)});
  if (!busy_ && !next_.armed()) next_ = loop_.after(Duration::zero(), [this] { go_on(); });
}

/// Where the key is absent the store answers with what was expected, and stores nothing.
void CompareSetClient::read(const std::string& key, Duration limit, Told told) {
  const std::string absent(kAbsent);
  compare_set(key, absent, absent, limit, std::move(told));
}

void CompareSetClient::forget_all() {
  pending_.clear();
  next_.cancel();
  disconnect();
}

void CompareSetClient::go_on() {
  if (busy_ || pending_.empty()) return;
  busy_ = true;
  socket_ ? send() : find_address();
}

Duration CompareSetClient::time_left() const {
  const auto left = std::chrono::ceil<Duration>(pending_.front().give_up - steady_now());
  return std::clamp(left, Duration(1), std::max(options_.attempt, Duration(1)));
}

void CompareSetClient::find_address() {
  if (const std::string known = known_address(options_.host); !known.empty()) return connect_to(known);
  look_up_address(
      loop_, resolving_, [host = options_.host] { return ask_for_address(host); },
      [this](const std::string& address) {
        address.empty() ? fail("no address of '" + options_.host + "' can be found") : connect_to(address);
      });
}

void CompareSetClient::connect_to(const std::string& address) {
  try {
    socket_ = begin_to_connect(address, options_.port);
  } catch (const std::system_error& error) {
    return fail(error.what());
  }
  writable_ = loop_.on_writable(socket_.get(), [this] { connected(); });
  attempt_limit_ = loop_.after(time_left(), [this] { fail("no answer from the store at " + place()); });
}

/// torch's server wants the greeting in one piece: the first request goes with it.
void CompareSetClient::connected() {
  writable_.cancel();
  if (const int error = connection_error(socket_.get()); error != 0) {
    return fail("cannot connect to the store at " + place() + ": " + std::generic_category().message(error));
  }
  readable_ = loop_.on_readable(socket_.get(), [this] { read_socket(); });
  append_request(out_.tail(), {StoreCommand::kValidate, {}, kStoreMagic});
  send();
}

void CompareSetClient::send() {
  reader_ = StoredValueReader();
  out_.tail() += pending_.front().request;
  attempt_limit_ =
      loop_.after(time_left(), [this] { fail("the store at " + place() + " is connected and does not answer"); });
  flush();
}

/// A connection that breaks is seen where it is read.
void CompareSetClient::flush() {
  if (!out_.send_to(socket_.get()) || out_.empty()) return writable_.cancel();
  if (!writable_.armed()) writable_ = loop_.on_writable(socket_.get(), [this] { flush(); });
}

void CompareSetClient::read_socket() {
  char bytes[kReadBytes];
  const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (!busy_) return disconnect();  // closed while nobody asks, or words that nobody asked for
  if (count <= 0) return fail("the store at " + place() + " closed the connection");
  reader_.take({bytes, static_cast<std::size_t>(count)});
  if (reader_.is_refused()) return fail("what answers at " + place() + " is no TCPStore");
  auto value = reader_.value();
  if (!value) return;
  own_address_ = ends_of_connection(socket_.get()).own;
  trouble_.clear();
  finish({.value = std::move(*value)});
}

/// Tries again while there is time.
void CompareSetClient::fail(const std::string& why) {
  disconnect();
  trouble_ = why;
  if (steady_now() + kPause >= pending_.front().give_up) return finish({.value = {}, .trouble = why});
  next_ = loop_.after(kPause, [this] { go_on(); });
}

void CompareSetClient::finish(const Result& result) {
  attempt_limit_.cancel();
  busy_ = false;
  const Told told = std::move(pending_.front().told);
  pending_.pop_front();
  if (!pending_.empty()) next_ = loop_.after(Duration::zero(), [this] { go_on(); });
  told(result);
}

void CompareSetClient::disconnect() {
  busy_ = false;
  resolving_.reset();
  attempt_limit_.cancel();
  readable_.cancel();
  writable_.cancel();
  out_ = SendBuffer();
  socket_.reset();
}

}  // namespace lrun::launcher
