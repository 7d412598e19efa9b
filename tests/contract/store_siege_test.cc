// The server's memory, and the service for its other clients, when thousands of connections are silent, slow or greedy.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/server.h"
#include "support/process_memory.h"
#include "support/raw_socket.h"
#include "support/store_client.h"
#include "support/store_server_thread.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

using test::kMemoryTells;
using test::resident_bytes;

constexpr long kMiB = 1024 * 1024;

SteadyTime end_of_siege() { return steady_now() + 40s; }

std::string encoded(const StoreRequest& request) {
  std::string bytes;
  append_request(bytes, request);
  return bytes;
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
  const auto handshakes = static_cast<std::size_t>((count + 1) / 2) + 1;
  const SteadyTime deadline = end_of_siege();
  while (server.num_clients() < handshakes && std::chrono::steady_clock::now() < deadline) continue;
  EXPECT_EQ(server.num_clients(), handshakes) << "of " << count << " connections half have sent the handshake";
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
  // Half of the crowd sends the handshake: with this limit nearly all of those that stay are clients that hold their
  // place.
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
    RawSocket foreign(server.port());
    ASSERT_TRUE(foreign.send(hello + bytes));
    EXPECT_TRUE(foreign.is_closed()) << reason;
    ASSERT_FALSE(server.log().empty()) << reason;
    EXPECT_NE(server.log().back().find(reason), std::string::npos) << server.log().back();
    client.ping(end_of_siege());
  }
  if (kMemoryTells) {
    EXPECT_LT(resident_bytes() - before, 8 * kMiB);
  }
}

std::uint64_t inode_of(int socket) {
  struct stat status {};
  ::fstat(socket, &status);
  return status.st_ino;
}

/// A launcher that knows which sockets its workers hold: told later, as they connect.
struct KnownWorkers {
  std::mutex mutex;
  RunSockets sockets;

  void add(const RawSocket& worker) {
    const std::lock_guard lock(mutex);
    sockets.inodes.insert(inode_of(worker.fd()));
  }
  StoreRunLook look() {
    return {.sockets = [this] {
      const std::lock_guard lock(mutex);
      return std::optional(sockets);
    }};
  }
};

bool answers(RawSocket& client) {
  return client.send({StoreCommand::kPing, {}, 7}) && client.receive(4) == std::string("\7\0\0\0", 4);
}

TEST(StoreSiege, UnfinishedMessagesOfOthersAreKeptSmallAndDriveOutNoWorker) {
  KnownWorkers workers;
  StoreServerThread server({.run = workers.look()});
  RawSocket worker(server.port());
  workers.add(worker);
  ASSERT_TRUE(worker.send_handshake());
  constexpr int kValues = 24;
  std::string beginning = encoded({StoreCommand::kValidate, {}, kStoreMagic});
  beginning += static_cast<char>(StoreCommand::kMultiSet);
  append_number(beginning, kValues + 1);
  for (int i = 0; i < kValues; ++i) {
    append_string(beginning, "/key" + std::to_string(i));
    append_string(beginning, std::string(kMiB, 'x'));
  }
  const long before = resident_bytes();
  std::vector<RawSocket> unfinished;
  for (int i = 0; i < 100; ++i) {
    unfinished.emplace_back(server.port());
    (void)unfinished.back().send(beginning);
  }
  ASSERT_TRUE(answers(worker));
  if (kMemoryTells) {
    EXPECT_LT(resident_bytes() - before, 100 * kMiB) << "all together sent 2.4 GiB";
  }
  const std::vector<std::string> log = server.log();
  ASSERT_FALSE(log.empty());
  EXPECT_NE(log.front().find("processes of this host outside the run"), std::string::npos) << log.front();
  for (int i = 0; i < 30; ++i) {  // more than others may have
    ASSERT_TRUE(worker.send({StoreCommand::kSet, {"/large" + std::to_string(i), std::string(kMaxValueBytes, 'x')}}));
  }
  EXPECT_TRUE(answers(worker));
}

TEST(StoreSiege, AnswersThatOthersDoNotReadAreKeptSmall) {
  KnownWorkers workers;
  StoreServerThread server({.run = workers.look()});
  RawSocket worker(server.port());
  workers.add(worker);
  ASSERT_TRUE(worker.send_handshake());
  ASSERT_TRUE(worker.send({StoreCommand::kSet, {"/large", std::string(kMaxValueBytes, 'x')}}));
  ASSERT_TRUE(answers(worker));
  const std::string greedy = encoded({StoreCommand::kValidate, {}, kStoreMagic}) +
                             encoded({StoreCommand::kMultiGet, std::vector<std::string>(16, "/large")});
  const long before = resident_bytes();
  std::vector<RawSocket> others;
  for (int i = 0; i < 20; ++i) {
    others.emplace_back(server.port());
    ASSERT_TRUE(others.back().send(greedy));
  }
  ASSERT_TRUE(answers(worker));
  if (kMemoryTells) {
    EXPECT_LT(resident_bytes() - before, 100 * kMiB) << "all together asked for 2.5 GiB";
  }
  const std::string read = encoded({StoreCommand::kMultiGet, std::vector<std::string>(16, "/large")});
  ASSERT_TRUE(worker.send(read));
  EXPECT_EQ(worker.receive(16 * (kMaxValueBytes + sizeof(std::uint64_t))).size(),
            16 * (kMaxValueBytes + sizeof(std::uint64_t)));
}

TEST(StoreSiege, IdleClientsShutNoWorkerOut) {
  KnownWorkers workers;
  constexpr std::size_t kPlaces = 50;
  StoreServerThread server({.max_connections = kPlaces, .run = workers.look()});
  RawSocket first(server.port());
  workers.add(first);
  ASSERT_TRUE(first.send_handshake() && answers(first));
  std::vector<RawSocket> idle;
  for (std::size_t i = 0; i < 2 * kPlaces; ++i) {
    idle.emplace_back(server.port());
    ASSERT_TRUE(idle.back().send_handshake());
    (void)server.num_clients();  // it has been accepted
  }
  EXPECT_LE(server.num_clients(), kPlaces);
  for (int i = 0; i < 10; ++i) {
    RawSocket worker(server.port());
    workers.add(worker);
    ASSERT_TRUE(worker.send_handshake() && answers(worker)) << "worker " << i << " has no place";
  }
  EXPECT_TRUE(answers(first)) << "a worker keeps its place";
}

/// As another user. \return what it read of the answer to a ping.
std::string ping_as(uid_t user, std::uint16_t port) {
  Pipe answer = make_pipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresuid(user, user, user) != 0) ::_exit(1);
    RawSocket client(port);
    const std::string read =
        client.send_handshake() && client.send({StoreCommand::kPing, {}, 7}) ? client.receive(4) : "";
    ::_exit(::write(answer.write.get(), read.data(), read.size()) < 0 ? 1 : 0);
  }
  answer.write.reset();
  char bytes[8];
  const ssize_t count = ::read(answer.read.get(), bytes, sizeof bytes);
  ::waitpid(pid, nullptr, 0);
  return {bytes, count > 0 ? static_cast<std::size_t>(count) : 0};
}

TEST(StoreSiege, OtherUsersOfTheHostAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kNobody = 65534;
  constexpr uid_t kOfTheRun = 65533;
  StoreServerThread server({.run = {.has_user = [](uid_t user) { return user == kOfTheRun; }}});
  EXPECT_EQ(ping_as(kNobody, server.port()), "");
  ASSERT_EQ(server.log().size(), 1U);
  EXPECT_NE(server.log()[0].find("it belongs to user 65534, and the run to user 0"), std::string::npos)
      << server.log()[0];
  EXPECT_EQ(ping_as(kOfTheRun, server.port()), std::string("\7\0\0\0", 4)) << "a worker may change its user";
  EXPECT_EQ(ping_as(0, server.port()), std::string("\7\0\0\0", 4));
}

TEST(StoreSiege, NothingIsCarriedOutOfWhatASenderLeftThatIsGone) {
  StoreServerThread server;
  const std::string poison =
      encoded({StoreCommand::kValidate, {}, kStoreMagic}) + encoded({StoreCommand::kSet, {"/poison", "x"}});
  for (const int by_reset : {0, 1}) {
    server.in_loop([&](StoreServer&) {  // it accepts nobody meanwhile
      RawSocket sender(server.port());
      const linger reset{by_reset, 0};
      ::setsockopt(sender.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      EXPECT_TRUE(sender.send(poison));
    });
  }
  StoreClient client("127.0.0.1", server.port(), end_of_siege());
  EXPECT_EQ(client.get_now("/poison", end_of_siege()), "");
  EXPECT_TRUE(server.log().empty()) << "nobody is there to be told of: " << server.log().front();
}

}  // namespace
}  // namespace lrun::launcher
