// What the server keeps, and what its other clients feel, when thousands of connections are silent, slow or greedy.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/client.h"
#include "store/server.h"
#include "support/raw_socket.h"
#include "support/store_server_thread.h"

namespace lrun {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryTells = false;  // a sanitizer keeps what was freed
#else
constexpr bool kMemoryTells = true;
#endif

constexpr long kMiB = 1024 * 1024;

SteadyTime end_of_siege() { return steady_now() + 40s; }

std::string encoded(const StoreRequest& request) {
  std::string bytes;
  append_request(bytes, request);
  return bytes;
}

long resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6)) * 1024;
  }
  return 0;
}

/// Raises the limit of descriptors, and says how many connections fit below it.
int connections_that_fit(int wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kForOthers = 200;
  const rlim_t fit = limit.rlim_max > kForOthers ? limit.rlim_max - kForOthers : 0;
  return static_cast<int>(std::min<rlim_t>(static_cast<rlim_t>(wanted), fit));
}

/// Connections of a process of their own, so that both their ends fit below the limit of descriptors. Made before the
/// server has its thread; it connects when it is told the port, and ends with this object.
class Crowd {
 public:
  explicit Crowd(int count) : pid_(::fork()) {
    if (pid_ == 0) connect_and_stay(count);
    port_.read.reset();
    done_.write.reset();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  /// Returns when all have connected and have said what they say.
  [[nodiscard]] bool connect_to(std::uint16_t port) {
    char byte = 0;
    return ::write(port_.write.get(), &port, sizeof port) == sizeof port && ::read(done_.read.get(), &byte, 1) == 1;
  }

 private:
  /// Every second one begins a request that claims to be large, the others say nothing at all.
  [[noreturn]] void connect_and_stay(int count) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    port_.write.reset();
    std::uint16_t port = 0;
    if (::read(port_.read.get(), &port, sizeof port) != sizeof port) ::_exit(1);
    std::string beginning = encoded({StoreCommand::kValidate, {}, kStoreMagic});
    beginning += encoded({StoreCommand::kSet, {"/k", ""}});
    beginning.resize(beginning.size() - sizeof(std::uint64_t));
    append_number(beginning, static_cast<std::int64_t>(kMaxValueBytes));
    std::vector<RawSocket> sockets;
    for (int i = 0; i < count; ++i) {
      sockets.emplace_back(port);
      const linger reset{1, 0};  // leaves no port behind that waits
      ::setsockopt(sockets.back().fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      if (i % 2 == 0) sockets.back().send(beginning);
    }
    if (::write(done_.write.get(), "x", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }

  Pipe port_ = make_pipe();
  Pipe done_ = make_pipe();
  pid_t pid_;
};

void expect_answers(StoreClient& client, int requests) {
  const std::int64_t before = client.add("/counter", 0, end_of_siege());
  for (int i = 0; i < requests; ++i) client.add("/counter", 1, end_of_siege());
  EXPECT_EQ(client.add("/counter", 0, end_of_siege()), before + requests);
}

TEST(StoreSiege, TenThousandSilentConnectionsCostLittleAndHoldNobodyUp) {
  const int count = connections_that_fit(10'000);
  Crowd crowd(count);
  StoreServerThread server({.max_connections = 20'000});
  StoreClient client("127.0.0.1", server.port(), end_of_siege());
  const long before = resident_bytes();
  ASSERT_TRUE(crowd.connect_to(server.port()));
  const auto greeted = static_cast<std::size_t>((count + 1) / 2) + 1;
  const SteadyTime deadline = end_of_siege();
  while (server.num_clients() < greeted && std::chrono::steady_clock::now() < deadline) continue;
  EXPECT_EQ(server.num_clients(), greeted) << "of " << count << " connections half have greeted";
  constexpr long kBytesOfOne = 2048;  // half of them claim 8 MiB
  if (kMemoryTells) {
    EXPECT_LT(resident_bytes() - before, count * kBytesOfOne + kMiB) << count << " connections";
  }
  expect_answers(client, 200);
  StoreClient newcomer("127.0.0.1", server.port(), end_of_siege());
  expect_answers(newcomer, 1);
  EXPECT_TRUE(server.log().empty()) << server.log().front();
}

TEST(StoreSiege, MoreSilentConnectionsThanAreTakenDriveOutNoClient) {
  const int count = connections_that_fit(10'000);
  Crowd crowd(count);
  // Half of the crowd greets: with this limit nearly all of those that stay are clients that hold their place.
  StoreServerThread server({.max_connections = static_cast<std::size_t>(count / 2 + 10)});
  StoreClient client("127.0.0.1", server.port(), end_of_siege());
  ASSERT_TRUE(crowd.connect_to(server.port()));
  expect_answers(client, 200);
  StoreClient newcomer("127.0.0.1", server.port(), end_of_siege());
  expect_answers(newcomer, 1);
  EXPECT_LE(server.num_clients(), static_cast<std::size_t>(count / 2 + 10));
  EXPECT_LE(server.log().size(), 2U) << "thousands were refused, and a line said so";
}

TEST(StoreSiege, ClientsThatNeverReadAreKeptSmallAndHoldNobodyUp) {
  StoreServerThread server;
  StoreClient client("127.0.0.1", server.port(), end_of_siege());
  client.set("/k", std::string(64 * 1024, 'x'), end_of_siege());
  constexpr int kGreedy = 50;
  constexpr int kRequests = 2000;  // 125 MiB of answers for each
  std::string requests = encoded({StoreCommand::kValidate, {}, kStoreMagic});
  for (int i = 0; i < kRequests; ++i) requests += encoded({StoreCommand::kGet, {"/k"}});
  const long before = resident_bytes();
  std::vector<RawSocket> greedy;
  for (int i = 0; i < kGreedy; ++i) {
    greedy.emplace_back(server.port());
    ASSERT_TRUE(greedy.back().send(requests));
  }
  expect_answers(client, 200);
  if (kMemoryTells) {
    EXPECT_LT(resident_bytes() - before, kGreedy * 4 * kMiB);
  }
  const std::size_t answer = sizeof(std::uint64_t) + 64 * 1024;
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(greedy.front().receive(answer).size(), answer) << i;
}

TEST(StoreSiege, ClientsThatSendAByteAtATimeAreServedAllTheSame) {
  StoreServerThread server;
  StoreClient client("127.0.0.1", server.port(), end_of_siege());
  constexpr int kSlow = 200;
  std::vector<RawSocket> slow;
  for (int i = 0; i < kSlow; ++i) slow.emplace_back(server.port());
  const std::string request =
      encoded({StoreCommand::kValidate, {}, kStoreMagic}) + encoded({StoreCommand::kAdd, {"/slow"}, 1});
  for (const char byte : request) {
    for (RawSocket& socket : slow) ASSERT_TRUE(socket.send(std::string_view(&byte, 1)));
    client.ping(end_of_siege());
  }
  for (RawSocket& socket : slow) ASSERT_EQ(socket.receive(sizeof(std::int64_t)).size(), sizeof(std::int64_t));
  EXPECT_EQ(client.get("/slow", end_of_siege()), std::to_string(kSlow));
}

TEST(StoreSiege, WhatIsTooLargeIsRefusedBeforeItIsKept) {
  StoreServerThread server;
  StoreClient client("127.0.0.1", server.port(), end_of_siege());
  const std::string hello = encoded({StoreCommand::kValidate, {}, kStoreMagic});
  const auto claim = [](StoreCommand command, const std::vector<std::uint64_t>& numbers) {
    std::string bytes(1, static_cast<char>(command));
    for (const std::uint64_t number : numbers) append_number(bytes, static_cast<std::int64_t>(number));
    return bytes;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {claim(StoreCommand::kGet, {kMaxKeyBytes + 1}), "a key of 8193 bytes"},
      {claim(StoreCommand::kGet, {~std::uint64_t{0}}), "a key of 18446744073709551615 bytes"},
      {claim(StoreCommand::kQueuePush, {0, kMaxValueBytes + 1}), "a value of 8388609 bytes"},
      {claim(StoreCommand::kWait, {kMaxKeysPerRequest + 1}), "131073 keys in one request"},
      {claim(StoreCommand::kMultiSet, {~std::uint64_t{0}}), "18446744073709551615 keys in one request"},
  };
  const long before = resident_bytes();
  for (const auto& [bytes, reason] : cases) {
    RawSocket stranger(server.port());
    ASSERT_TRUE(stranger.send(hello + bytes));
    EXPECT_TRUE(stranger.is_closed()) << reason;
    ASSERT_FALSE(server.log().empty()) << reason;
    EXPECT_NE(server.log().back().find(reason), std::string::npos) << server.log().back();
    client.ping(end_of_siege());
  }
  if (kMemoryTells) {
    EXPECT_LT(resident_bytes() - before, 8 * kMiB);
  }
}

}  // namespace
}  // namespace lrun
