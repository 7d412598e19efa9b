#include "runtime/collectives/store_client.h"

#include <lrun/error.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/collectives/backoff.h"

// The one file of liblrun that sees c10d.

namespace lrun {
namespace {

using Store = c10::intrusive_ptr<c10d::TCPStore>;

std::chrono::milliseconds left_until(SteadyTime deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));  // 0 would be no deadline
}

std::string name_of(const StoreAddress& address) { return address.host + ":" + std::to_string(address.port); }

/// c10d's texts come with a C++ stack trace.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

Store open(const StoreAddress& address, bool serve, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.isServer = serve;
  options.waitWorkers = false;
  options.timeout = timeout;
  options.useLibUV = true;
  return c10::make_intrusive<c10d::TCPStore>(address.host, options);
}

/// The server of this process for an address. It lives as long as the process: other groups of the program meet in it
/// too, and ranks may ask for a last answer when this one has gone on.
Store serve(const StoreAddress& address, std::chrono::milliseconds timeout) {
  using Servers = std::map<std::pair<std::string, std::uint16_t>, Store>;
  static std::mutex mutex;
  static Servers& servers = *new Servers;  // never destroyed: its threads would outlive what they use at exit
  const std::lock_guard lock(mutex);
  if (const auto found = servers.find({address.host, address.port}); found != servers.end()) return found->second;
  Store store = open(address, true, timeout);
  servers.emplace(std::pair(address.host, store->getPort()), store);
  return store;
}

}  // namespace

class StoreClient::Connection {
 public:
  Connection(const StoreAddress& address, SteadyTime deadline);

  /// Runs `function`, whose wait ends at `deadline`.
  template <typename Function>
  auto call(const char* what, SteadyTime deadline, const Function& function) -> decltype(function()) {
    try {
      return function();
    } catch (const std::exception& error) {
      const std::string text = std::string(what) + " the store at " + name_ + ": " + first_line(error);
      if (std::chrono::steady_clock::now() >= deadline) throw CollectiveTimeout(text);
      throw Error(text);
    }
  }

  c10d::TCPStore& store() { return *store_; }

 private:
  std::string name_;
  Store store_;
};

StoreClient::Connection::Connection(const StoreAddress& address, SteadyTime deadline) : name_(name_of(address)) {
  call("cannot reach", deadline, [&] {
    const auto timeout = left_until(deadline);
    StoreAddress served = address;
    if (address.serve) served.port = serve(address, timeout)->getPort();
    name_ = name_of(served);
    store_ = open(served, false, timeout);
  });
}

StoreClient::StoreClient(const StoreAddress& address, SteadyTime deadline)
    : connection_(std::make_unique<Connection>(address, deadline)) {}
StoreClient::StoreClient(StoreClient&&) noexcept = default;
StoreClient& StoreClient::operator=(StoreClient&&) noexcept = default;
StoreClient::~StoreClient() = default;

std::uint16_t StoreClient::port() const { return connection_->store().getPort(); }

void StoreClient::set(const std::string& key, const std::string& value) {
  connection_->call("cannot write to", SteadyTime::max(),
                    [&] { connection_->store().set(key, std::vector<std::uint8_t>(value.begin(), value.end())); });
}

std::optional<std::string> StoreClient::try_get(const std::string& key) {
  using Value = std::optional<std::string>;
  return connection_->call("cannot read from", SteadyTime::max(), [&]() -> Value {
    if (!connection_->store().check({key})) return std::nullopt;
    const std::vector<std::uint8_t> value = connection_->store().get(key);
    return std::string(value.begin(), value.end());
  });
}

// Asks again and again instead of using the store's own wait: when that one times out, c10d prints warnings, and its
// client can be left waiting for an answer without a deadline. Groups are made rarely and their ranks come together.
std::optional<std::string> StoreClient::get(const std::string& key, SteadyTime deadline,
                                            const std::function<bool()>& give_up) {
  for (Backoff backoff(deadline);; backoff.sleep()) {
    const bool last = give_up && give_up();  // before the look: what a process said before it ended is seen
    auto value = try_get(key);
    if (value || last || backoff.is_over()) return value;
  }
}

}  // namespace lrun
