// In: keys and values of ranks that are about to meet. Out: requests to the workers' store, which rank 0 serves where
// no launcher does. With gloo/link.cc the only file of liblrun that sees c10d.
#include "runtime/collectives/bootstrap/store_client.h"

#include <lrun/error.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "runtime/collectives/bootstrap/backoff.h"
#include "runtime/collectives/bootstrap/connect_to_host.h"
#include "runtime/collectives/bootstrap/local_address.h"

namespace lrun::detail {
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

Store open(const StoreAddress& address, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.isServer = true;
  options.waitWorkers = false;
  options.timeout = timeout;
  options.useLibUV = true;
  return c10::make_intrusive<c10d::TCPStore>(address.host, options);
}

/// The server of this process for an address. It lives as long as the process: other groups of the program use it, too,
/// and ranks may ask for a last answer after this one has gone on.
Store serve(const StoreAddress& address, std::chrono::milliseconds timeout) {
  using Servers = std::map<std::pair<std::string, std::uint16_t>, Store>;
  static std::mutex mutex;
  static Servers& servers = *new Servers;  // never destroyed: its threads would outlive what they use at exit
  const std::lock_guard lock(mutex);
  if (const auto found = servers.find({address.host, address.port}); found != servers.end()) return found->second;
  Store store = open(address, timeout);
  servers.emplace(std::pair(address.host, store->getPort()), store);
  return store;
}

/// Runs `function`, which throws std::system_error, for a request to the store `name`.
template <typename Function>
auto ask(const char* what, const std::string& name, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::system_error& error) {
    const std::string text = std::string(what) + " the store at " + name + ": " + error.what();
    if (error.code() == std::errc::timed_out) throw CollectiveTimeout(text);
    throw Error(text);
  }
}

/// The port where this process now serves the address.
std::uint16_t serve_port(const StoreAddress& address, SteadyTime deadline) {
  try {
    return serve(address, left_until(deadline))->getPort();
  } catch (const std::exception& error) {
    throw Error("cannot serve the store at " + name_of(address) + ": " + first_line(error));
  }
}

/// TCPStore puts this in front of all keys, so that it sees our keys under the names used here.
std::string on_wire(const std::string& key) { return "/" + key; }

/// Tries again while the name is unknown or nobody answers there. \throws std::system_error  EPROTO: no TCPStore.
StoreConnection connect_until(const std::string& host, std::uint16_t port, SteadyTime deadline) {
  for (Backoff backoff(deadline, std::chrono::milliseconds(50));; backoff.sleep()) {
    try {
      return {connect_to_host(host, port, deadline), deadline};
    } catch (const std::system_error& error) {
      if (backoff.is_over() || error.code() == std::errc::protocol_error) throw;
    }
  }
}

StoreConnection connect(const std::string& host, std::uint16_t port, SteadyTime deadline) {
  try {
    return connect_until(host, port, deadline);
  } catch (const std::system_error& error) {
    const std::string text = "cannot reach the store at " + host + ":" + std::to_string(port) + ": " + error.what();
    if (error.code() == std::errc::protocol_error) throw Error(text);
    throw CollectiveTimeout(text);  // it has tried until then
  }
}

/// The time that a server on a busy machine needs for an answer: the last request, at the deadline, gets as much.
SteadyTime answer_by(SteadyTime deadline) {
  return std::max<SteadyTime>(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

}  // namespace

StoreClient::StoreClient(const StoreAddress& address, SteadyTime deadline)
    : port_(address.serve ? serve_port(address, deadline) : address.port),
      name_(address.host + ":" + std::to_string(port_)),
      connection_(connect(address.host, port_, deadline)) {}

void StoreClient::set(const std::string& key, const std::string& value, SteadyTime deadline) {
  ask("cannot write to", name_, [&] { connection_.set(on_wire(key), value, answer_by(deadline)); });
}

std::optional<std::string> StoreClient::try_get(const std::string& key, SteadyTime deadline) {
  using Value = std::optional<std::string>;
  return ask("cannot read from", name_, [&]() -> Value {
    if (!connection_.check(on_wire(key), answer_by(deadline))) return std::nullopt;
    return connection_.get(on_wire(key), answer_by(deadline));
  });
}

std::string StoreClient::local_address() const { return local_address_of(connection_.fd()); }

// Polls instead of using the store's own wait, which would have to be cancelled when a peer ends. Groups are made
// rarely, and their ranks come together.
std::optional<std::string> StoreClient::get(const std::string& key, SteadyTime deadline,
                                            const std::function<bool()>& give_up) {
  for (Backoff backoff(deadline);; backoff.sleep()) {
    const bool last = give_up && give_up();  // before the look: values that a process set before it ended are seen
    auto value = try_get(key, deadline);
    if (value || last || backoff.is_over()) return value;
  }
}

}  // namespace lrun::detail
