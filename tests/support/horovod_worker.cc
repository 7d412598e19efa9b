// A worker that meets the others as Horovod over Gloo does, without Horovod. Through the HTTP store that the launcher
// serves it publishes its addresses in each scope, asks for those of the others, connects to all of them, and leaves.
// Then it sums over the connections, in the world, on its host, across hosts and in a set of processes, and prints:
//   result rank=0 size=4 local=0/2 cross=0/2 host=a sums=6,1,2 set=2
// usage: horovod_worker [--silent RANK] [--fail-once RANK] [--fail-always RANK] [--meet-twice]
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace {

using lrun::Fd;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) fail(std::string(name) + " is not set");
  return value;
}

int number(const char* name) { return std::stoi(variable(name)); }

/// Gives up long before the test does.
void limit_waits(const Fd& socket) {
  const timeval limit{.tv_sec = 40, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void send_all(const Fd& socket, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) fail(std::string("send: ") + std::strerror(errno));
    sent += static_cast<std::size_t>(count);
  }
}

std::string receive_exactly(const Fd& socket, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t got = 0; got < size;) {
    const ssize_t count = ::recv(socket.get(), bytes.data() + got, size - got, 0);
    if (count == 0) fail("a peer is gone");
    if (count < 0) fail(std::string("recv: ") + std::strerror(errno));
    got += static_cast<std::size_t>(count);
  }
  return bytes;
}

Fd connect_to(const sockaddr_in& address) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  limit_waits(socket);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail(std::string("connect: ") + std::strerror(errno));
  }
  return socket;
}

/// As Horovod's: IPv4 alone, the first address of a name.
sockaddr_in store_address() {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(variable("HOROVOD_GLOO_RENDEZVOUS_ADDR").c_str(), variable("HOROVOD_GLOO_RENDEZVOUS_PORT").c_str(),
                    &hints, &list) != 0) {
    fail("the store's address is none");
  }
  sockaddr_in address{};
  std::memcpy(&address, list->ai_addr, sizeof address);
  ::freeaddrinfo(list);
  return address;
}

/// The first IPv4 address of HOROVOD_GLOO_IFACE.
in_addr own_address() {
  const std::string wanted = variable("HOROVOD_GLOO_IFACE");
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) fail("getifaddrs");
  std::optional<in_addr> found;
  for (const ifaddrs* entry = list; entry != nullptr && !found; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET || wanted != entry->ifa_name) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof address);
    found = address.sin_addr;
  }
  ::freeifaddrs(list);
  if (!found) fail("no interface " + wanted + " with an IPv4 address");
  return *found;
}

struct Response {
  int status = 0;
  std::string body;
};

/// One request, one connection. Knows one spelling of the length, and reads to the end where it finds none.
Response request(const std::string& method, const std::string& place, const std::string& body = {}) {
  const Fd socket = connect_to(store_address());
  std::ostringstream head;
  head << method << " " << place << " HTTP/1.1\r\nHost: " << variable("HOROVOD_GLOO_RENDEZVOUS_ADDR")
       << "\r\nContent-Length: " << body.size() << "\r\n\r\n";
  send_all(socket, head.str() + body);
  std::string bytes;
  std::size_t wanted = std::string::npos;
  while (bytes.size() < wanted) {
    char piece[4096];
    const ssize_t count = ::recv(socket.get(), piece, sizeof piece, 0);
    if (count < 0) fail(std::string("the store: ") + std::strerror(errno));
    if (count == 0) break;
    bytes.append(piece, static_cast<std::size_t>(count));
    const std::size_t end = bytes.find("\r\n\r\n");
    const std::size_t length = bytes.find("Content-Length: ");
    if (end == std::string::npos || length == std::string::npos || length > end) continue;
    wanted = end + 4 + std::stoul(bytes.substr(length + std::strlen("Content-Length: ")));
  }
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos || !bytes.starts_with("HTTP/1.1 ")) fail("the store answered: " + bytes);
  return {std::stoi(bytes.substr(std::strlen("HTTP/1.1 "))), bytes.substr(end + 4)};
}

/// Anything but found and not found is tried three times, half a second apart.
Response ask(const std::string& method, const std::string& place, const std::string& body = {}) {
  for (int tries = 0; tries < 3; ++tries) {
    try {
      Response response = request(method, place, body);
      if (response.status == 200 || response.status == 404) return response;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s %s: %s\n", method.c_str(), place.c_str(), error.what());
    }
    std::this_thread::sleep_for(500ms);
  }
  fail("HTTP request failed.");
}

/// Asks every ten milliseconds, for thirty seconds.
std::string wait_for(const std::string& place) {
  const auto deadline = Clock::now() + 30s;
  while (Clock::now() < deadline) {
    const Response response = ask("GET", place);
    if (response.status == 200) return response.body;
    std::this_thread::sleep_for(10ms);
  }
  fail("nothing at " + place + " for 30 seconds");
}

std::string bytes_of(std::int32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::int32_t value_of(const std::string& bytes) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// The ranks of one scope, each connected to each.
class Mesh {
 public:
  Mesh(const std::string& scope, int rank, int size) {
    Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    limit_waits(listener);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr = own_address();
    socklen_t length = sizeof own;
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        ::listen(listener.get(), 128) != 0 ||
        ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
      fail(std::string("listen: ") + std::strerror(errno));
    }
    const std::string place = "/" + scope + "/";
    (void)ask("PUT", place + "rank_" + std::to_string(rank), variable("HOROVOD_HOSTNAME"));
    for (int other = 0; other < rank; ++other) (void)ask("GET", place + "rank_" + std::to_string(other));
    std::string addresses;  // with zeros in it, one for each peer
    for (int other = 0; other < size; ++other) addresses.append(reinterpret_cast<const char*>(&own), sizeof own);
    (void)ask("PUT", place + std::to_string(rank), addresses);
    for (int other = 0; other < size; ++other) {
      const std::string theirs = wait_for(place + std::to_string(other));
      if (theirs.size() != addresses.size()) fail("rank " + std::to_string(other) + " told something else");
      if (other >= rank) continue;
      sockaddr_in address{};
      std::memcpy(&address, theirs.data() + static_cast<std::size_t>(rank) * sizeof address, sizeof address);
      peers_[other] = connect_to(address);
      send_all(peers_[other], bytes_of(rank));
    }
    while (static_cast<int>(peers_.size()) < size - 1) {
      Fd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) fail(std::string("accept: ") + std::strerror(errno));
      limit_waits(peer);
      const int other = value_of(receive_exactly(peer, sizeof(std::int32_t)));
      if (other <= rank || other >= size || peers_.contains(other)) fail("a peer of another world came");
      peers_[other] = std::move(peer);
    }
    (void)sum(0);  // all are connected: nobody needs the store's values any more
    (void)ask("DELETE", place + std::to_string(rank));
  }

  [[nodiscard]] std::int32_t sum(std::int32_t value) {
    for (const auto& [other, peer] : peers_) send_all(peer, bytes_of(value));
    for (const auto& [other, peer] : peers_) value += value_of(receive_exactly(peer, sizeof value));
    return value;
  }

 private:
  std::map<int, Fd> peers_;
};

struct Arguments {
  std::map<std::string, std::string> values;

  Arguments(int count, char** words) {
    for (int i = 1; i < count; ++i) {
      const std::string name = words[i];
      values[name] = name == "--meet-twice" ? "" : words[++i];
    }
  }
  [[nodiscard]] bool are_for(const char* name, int rank) const {
    const auto found = values.find(name);
    return found != values.end() && found->second == std::to_string(rank);
  }
};

/// Local ranks are neighbours, so that the set of the even ones has members on every host.
std::string set_of_even_ranks(int rank, int size) {
  if (rank % 2 != 0) return "none";
  Mesh mesh("global_process_set_hash_1f", rank / 2, (size + 1) / 2);
  return std::to_string(mesh.sum(rank));
}

void meet() {
  const int rank = number("HOROVOD_RANK");
  const int size = number("HOROVOD_SIZE");
  const int local_rank = number("HOROVOD_LOCAL_RANK");
  const int local_size = number("HOROVOD_LOCAL_SIZE");
  const int cross_rank = number("HOROVOD_CROSS_RANK");
  const int cross_size = number("HOROVOD_CROSS_SIZE");
  const std::string host = variable("HOROVOD_HOSTNAME");
  Mesh world("global", rank, size);
  Mesh local("local_" + host, local_rank, local_size);
  Mesh cross("cross_" + std::to_string(local_rank), cross_rank, cross_size);
  std::ostringstream sums;
  sums << world.sum(rank) << ',' << local.sum(rank) << ',' << cross.sum(rank);
  const std::string set = set_of_even_ranks(rank, size);
  std::printf("result rank=%d size=%d local=%d/%d cross=%d/%d host=%s sums=%s set=%s\n", rank, size, local_rank,
              local_size, cross_rank, cross_size, host.c_str(), sums.str().c_str(), set.c_str());
  (void)world.sum(0);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments(argc, argv);
    const int rank = number("HOROVOD_RANK");
    if (variable("HOROVOD_CONTROLLER") != "gloo" || variable("HOROVOD_CPU_OPERATIONS") != "gloo") fail("not over gloo");
    while (arguments.are_for("--silent", rank)) ::pause();
    const bool first = variable("TORCHELASTIC_RESTART_COUNT") == "0";
    if (arguments.are_for("--fail-always", rank) || (first && arguments.are_for("--fail-once", rank))) {
      // Its entries in the store must be gone when the others meet again.
      (void)ask("PUT", "/global/rank_" + std::to_string(rank), "stale");
      (void)ask("PUT", "/global/left", "stale");
      return 3;
    }
    if (!first && ask("GET", "/global/left").status != 404) fail("the store has values of the attempt before");
    meet();
    if (arguments.values.contains("--meet-twice")) meet();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "horovod_worker: %s\n", error.what());
    return 1;
  }
  return 0;
}
