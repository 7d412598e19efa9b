// In: names of hosts. Out: whether a TCP connection gets there, for each. Called by read_machine(). All that may hang
// runs in a forked child, a thread for each host.
#include "inspect/reach_hosts.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "base/child_query.h"
#include "base/clock.h"
#include "base/fd.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

constexpr const char* kPort = "29500";  // torchrun's, which a firewall that knows about training allows
constexpr Duration kForTheAnswer(500);  // of the limit: the child has to write its answer in time

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up(const std::string& name, int& error) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  error = ::getaddrinfo(name.c_str(), kPort, &hints, &list);
  return Addresses(list);
}

std::string numeric(const addrinfo& address) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(address.ai_addr, address.ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

/// 0: it answered; ETIMEDOUT: it did not.
int try_to_connect(const addrinfo& address, SteadyTime deadline) {
  const Fd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0 || errno == ECONNREFUSED) return 0;
  if (errno != EINPROGRESS) return errno;
  const auto left = std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now());
  pollfd writable{socket.get(), POLLOUT, 0};
  if (::poll(&writable, 1, static_cast<int>(std::max<long>(left.count(), 0))) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == ECONNREFUSED ? 0 : error;
}

PeerFacts reach(const std::string& host, SteadyTime deadline) {
  int error = 0;
  const Addresses addresses = look_up(host, error);
  if (!addresses) return {host, PeerFacts::Path::kUnresolved, "", ::gai_strerror(error)};
  const int failure = try_to_connect(*addresses, deadline);
  const std::string address = numeric(*addresses);
  if (failure == 0) return {host, PeerFacts::Path::kOpen, address, ""};
  if (failure == ETIMEDOUT) return {host, PeerFacts::Path::kSilent, address, ""};
  return {host, PeerFacts::Path::kUnreachable, address, std::generic_category().message(failure)};
}

/// The results of the threads of the child. Threads that hang in a name service are never joined: the process ends
/// without them.
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<PeerFacts> peers;
  std::size_t reached = 0;
};

/// Runs in the child.
std::string reach_all(const std::vector<std::string>& hosts, SteadyTime deadline) {
  const auto board = std::make_shared<Board>();  // shared: a thread that hangs outlives this function
  for (const std::string& host : hosts) board->peers.push_back({host, PeerFacts::Path::kSilent, "", ""});
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::thread([board, i, host = hosts[i], deadline] {
      PeerFacts peer = reach(host, deadline);
      const std::lock_guard lock(board->mutex);
      board->peers[i] = std::move(peer);
      ++board->reached;
      board->changed.notify_one();
    }).detach();
  }
  std::unique_lock lock(board->mutex);
  board->changed.wait_until(lock, deadline, [&] { return board->reached == hosts.size(); });
  Json json = Json::array();
  for (const PeerFacts& peer : board->peers) json.push_back({static_cast<int>(peer.path), peer.address, peer.detail});
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

std::vector<std::string> resolve(const std::string& name, Duration limit, bool& timed_out) {
  const auto query = [&] {
    int error = 0;
    const Addresses addresses = look_up(name, error);
    Json json = Json::array();
    for (const addrinfo* next = addresses.get(); next != nullptr; next = next->ai_next) json.push_back(numeric(*next));
    return json.dump();
  };
  const ChildAnswer answer = query_in_child(query, limit);
  timed_out = answer.end == ChildAnswer::End::kTimedOut;
  if (answer.end != ChildAnswer::End::kAnswered) return {};
  return Json::parse(answer.text).get<std::vector<std::string>>();
}

std::vector<PeerFacts> reach_hosts(const std::vector<std::string>& hosts, Duration limit) {
  std::vector<PeerFacts> peers;
  for (const std::string& host : hosts) peers.push_back({host, PeerFacts::Path::kSilent, "", ""});
  if (hosts.empty()) return peers;
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit - kForTheAnswer;
  const ChildAnswer answer = query_in_child([&] { return reach_all(hosts, deadline); }, limit);
  if (answer.end != ChildAnswer::End::kAnswered) return peers;
  const Json json = Json::parse(answer.text);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i].path = static_cast<PeerFacts::Path>(json.at(i).at(0).get<int>());
    peers[i].address = json.at(i).at(1).get<std::string>();
    peers[i].detail = json.at(i).at(2).get<std::string>();
  }
  return peers;
}

}  // namespace lrun::launcher
