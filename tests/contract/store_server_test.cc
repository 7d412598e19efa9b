// The server's treatment of clients that misbehave, are slow, or are of another round.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "store/server.h"
#include "support/patience.h"
#include "support/raw_socket.h"
#include "support/store_client.h"
#include "support/store_server_thread.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

using test::soon;

class StoreServerTest : public testing::Test {
 protected:
  StoreClient connect() { return {"127.0.0.1", server_.port(), soon()}; }
  RawSocket connect_raw() { return RawSocket(server_.port()); }

  std::string encoded(const StoreRequest& request) {
    std::string bytes;
    append_request(bytes, request);
    return bytes;
  }

  StoreServerThread server_;
};

TEST_F(StoreServerTest, AnswersRequestsThatComeInSingleBytes) {
  RawSocket client = connect_raw();
  const std::string bytes = encoded({StoreCommand::kValidate, {}, kStoreMagic}) +
                            encoded({StoreCommand::kSet, {"/k", "v"}}) + encoded({StoreCommand::kGet, {"/k"}});
  for (const char byte : bytes) ASSERT_TRUE(client.send(std::string_view(&byte, 1)));
  EXPECT_EQ(client.receive(9), std::string("\1\0\0\0\0\0\0\0v", 9));
}

TEST_F(StoreServerTest, AnswersPipelinedRequestsInTheirOrder) {
  RawSocket client = connect_raw();
  std::string bytes = encoded({StoreCommand::kValidate, {}, kStoreMagic}) + encoded({StoreCommand::kWait, {"/k"}}) +
                      encoded({StoreCommand::kSet, {"/k", "7"}}) + encoded({StoreCommand::kAdd, {"/k"}, 3}) +
                      encoded({StoreCommand::kCancelWait});
  ASSERT_TRUE(client.send(bytes));
  EXPECT_EQ(client.receive(10), std::string("\0\x0a\0\0\0\0\0\0\0\1", 10)) << "stop waiting, 10, wait canceled";
}

TEST_F(StoreServerTest, ClosesTheConnectionOfAStrangerAndNamesIt) {
  struct Case {
    std::string bytes;
    std::string reason;
  };
  const std::string hello = encoded({StoreCommand::kValidate, {}, kStoreMagic});
  const std::vector<Case> cases = {
      {"GET / HTTP/1.1\r\n\r\n", "does not begin with VALIDATE"},
      {encoded({StoreCommand::kValidate, {}, kStoreMagic + 1}), "a wrong magic number"},
      {std::string("\xce\xf7\x85\x3c\x02", 5), "torch 2.0"},
      {hello + "\xee", "unknown request 238"},
      {hello + hello, "a second VALIDATE"},
      {hello + encoded({StoreCommand::kGet, {std::string(kMaxKeyBytes + 1, 'k')}}), "a key of 8193 bytes"},
      {hello + encoded({StoreCommand::kSet, {"/k", "x"}}) + encoded({StoreCommand::kAdd, {"/k"}, 1}), "not a number"},
  };
  StoreClient bystander = connect();
  for (const Case& it : cases) {
    RawSocket foreign = connect_raw();
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(foreign.fd(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    foreign.send(it.bytes);
    EXPECT_TRUE(foreign.is_closed()) << it.reason;
    const std::string line = server_.log().empty() ? "" : server_.log().back();
    EXPECT_NE(line.find(it.reason), std::string::npos) << line;
    EXPECT_NE(line.find("127.0.0.1:" + std::to_string(ntohs(address.sin_port))), std::string::npos) << line;
    bystander.ping(soon());
  }
  EXPECT_EQ(server_.log().size(), cases.size());
}

TEST_F(StoreServerTest, CountsForeignConnectionsThatItDoesNotName) {
  constexpr int kForeign = 100;
  for (int i = 0; i < kForeign; ++i) {
    RawSocket foreign = connect_raw();
    foreign.send("G");
    ASSERT_TRUE(foreign.is_closed());
  }
  EXPECT_EQ(server_.log().size(), 1U) << "the first of its reason";
  server_.in_loop([](StoreServer& server) { server.log_counted_refusals(); });
  ASSERT_EQ(server_.log().size(), 2U);
  EXPECT_EQ(server_.log()[1], "store: refused 99 more connections");
}

TEST(StoreServerLimit, SilentConnectionsMakeRoomForClients) {
  StoreServerThread server({.max_connections = 3});
  StoreClient first("127.0.0.1", server.port(), soon());
  std::vector<RawSocket> silent;
  for (int i = 0; i < 10; ++i) silent.emplace_back(server.port());
  StoreClient second("127.0.0.1", server.port(), soon());
  second.set("/k", "v", soon());
  EXPECT_EQ(first.get("/k", soon()), "v") << "a client keeps its connection";
  EXPECT_TRUE(silent.front().is_closed()) << "the oldest goes first";
  EXPECT_FALSE(silent.back().is_readable()) << "and the youngest may stay";
}

TEST(StoreServerLimit, RefusesAClientWhereAllOthersAreOnesToo) {
  StoreServerThread server({.max_connections = 2});
  StoreClient first("127.0.0.1", server.port(), soon());
  std::optional<StoreClient> second(std::in_place, "127.0.0.1", server.port(), soon());
  RawSocket third(server.port());
  EXPECT_TRUE(third.is_closed());
  ASSERT_EQ(server.log().size(), 1U);
  EXPECT_NE(server.log()[0].find("2 are open, and that is the limit"), std::string::npos) << server.log()[0];
  second.reset();
  while (server.num_clients() != 1) continue;
  StoreClient fourth("127.0.0.1", server.port(), soon());
  fourth.ping(soon());
  first.ping(soon());
}

TEST_F(StoreServerTest, AnswersWhatWasAskedBeforeARefusal) {
  RawSocket client = connect_raw();
  ASSERT_TRUE(client.send_handshake());
  ASSERT_TRUE(client.send(encoded({StoreCommand::kPing, {}, 7}) + "\xff"));
  EXPECT_EQ(client.receive(4), std::string("\7\0\0\0", 4));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(StoreServerTest, ForgetsTheWaitOfAConnectionThatBroke) {
  StoreClient client = connect();
  RawSocket lost = connect_raw();
  ASSERT_TRUE(lost.send_handshake());
  ASSERT_TRUE(lost.send({StoreCommand::kWait, {"/k"}}));
  ASSERT_TRUE(lost.send({StoreCommand::kPing, {}, 1}));
  ASSERT_EQ(lost.receive(4).size(), 4U);  // the wait is registered
  lost.close();
  client.set("/k", "v", soon());
  EXPECT_EQ(client.get("/k", soon()), "v");
}

TEST_F(StoreServerTest, IsNotHeldUpByHalfARequestOrASilentConnection) {
  const std::string half = encoded({StoreCommand::kSet, {"/slow", "value"}}).substr(0, 12);
  std::vector<RawSocket> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(connect_raw());
    const bool says_something = i % 2 == 0;
    ASSERT_TRUE(!says_something || silent.back().send_handshake());
    ASSERT_TRUE(!says_something || silent.back().send(half));
  }
  StoreClient client = connect();
  client.set("/k", "v", soon());
  EXPECT_EQ(client.get("/k", soon()), "v");
  EXPECT_FALSE(client.check({"/slow"}, soon()));
}

TEST_F(StoreServerTest, StopsReadingFromAClientThatDoesNotTakeItsAnswers) {
  StoreClient client = connect();
  const std::string value(kMaxValueBytes, 'x');
  client.set("/k", value, soon());
  RawSocket greedy = connect_raw();
  ASSERT_TRUE(greedy.send_handshake());
  const std::string get = encoded({StoreCommand::kGet, {"/k"}});
  constexpr int kRequests = 20;  // 160 MiB of answers
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(greedy.send(get));
  ASSERT_TRUE(greedy.send({StoreCommand::kAdd, {"/reached"}, 1}));
  for (int i = 0; i < 10; ++i) client.ping(soon());
  EXPECT_FALSE(client.check({"/reached"}, soon())) << "requests behind unread answers must wait";

  const std::size_t answer = sizeof(std::uint64_t) + value.size();
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(greedy.receive(answer).size(), answer) << "answer " << i;
  EXPECT_EQ(greedy.receive(8).size(), 8U);
  EXPECT_TRUE(client.check({"/reached"}, soon()));
}

TEST_F(StoreServerTest, GivesEveryClientItsTurnWhileOneFloodsIt) {
  std::atomic<bool> stop{false};
  std::thread flood([&] {
    RawSocket client = connect_raw();
    std::string bytes = encoded({StoreCommand::kValidate, {}, kStoreMagic});
    std::string many;
    for (int i = 0; i < 10'000; ++i) many += encoded({StoreCommand::kSet, {"/flood", "value"}});
    client.send(bytes);
    while (!stop) client.send(many);
  });
  StoreClient client = connect();
  for (int i = 0; i < 200; ++i) client.add("/k", 1, soon());
  EXPECT_EQ(client.get("/k", soon()), "200");
  stop = true;
  flood.join();
}

TEST_F(StoreServerTest, RefusesAnAnswerThatWouldTakeTheMemory) {
  StoreClient client = connect();
  client.set("/k", std::string(kMaxValueBytes, 'x'), soon());
  EXPECT_THROW((void)client.multi_get_now(std::vector<std::string>(1000, "/k"), soon()), std::system_error);
  ASSERT_EQ(server_.log().size(), 1U);
  EXPECT_NE(server_.log()[0].find("an answer of more than"), std::string::npos) << server_.log()[0];
}

TEST_F(StoreServerTest, CountsClientsWithAHandshake) {
  EXPECT_EQ(server_.num_clients(), 0U);
  RawSocket silent = connect_raw();
  {
    StoreClient client = connect();
    EXPECT_EQ(server_.num_clients(), 1U);
  }
  RawSocket client = connect_raw();
  ASSERT_TRUE(client.send_handshake());
  ASSERT_TRUE(client.send({StoreCommand::kPing, {}, 1}));
  ASSERT_EQ(client.receive(4).size(), 4U);
  const SteadyTime deadline = soon();
  while (server_.num_clients() != 1 && std::chrono::steady_clock::now() < deadline) continue;
  EXPECT_EQ(server_.num_clients(), 1U) << "the first one has left";
}

TEST(StoreServerPinged, IsCalledForTheFirstPingOfAConnection) {
  std::vector<std::int32_t> pids;
  StoreServerThread server({.pinged = [&](std::int32_t pid) { pids.push_back(pid); }});
  for (const std::uint64_t pid : {1000U, 2000U}) {
    RawSocket client(server.port());
    ASSERT_TRUE(client.send_handshake());
    for (const std::uint64_t nonce : {pid, pid + 1, pid + 2}) {
      ASSERT_TRUE(client.send({StoreCommand::kPing, {}, nonce}));
      ASSERT_EQ(client.receive(4).size(), 4U);
    }
  }
  server.in_loop([&](StoreServer&) { EXPECT_EQ(pids, (std::vector<std::int32_t>{1000, 2000})); });
}

TEST_F(StoreServerTest, BeginsARoundWithAnEmptyTableOnTheSamePort) {
  StoreClient old = connect();
  old.set("/k", "old", soon());
  // A connection of the old round with unread bytes, which the server has not accepted yet.
  RawSocket unaccepted = [this] {
    std::optional<RawSocket> socket;
    server_.in_loop([&](StoreServer& server) {
      socket.emplace(server.port());
      ASSERT_TRUE(socket->send_handshake());
      ASSERT_TRUE(socket->send({StoreCommand::kAdd, {"/k"}, 1}));
      server.reset();
    });
    return std::move(*socket);
  }();
  EXPECT_TRUE(unaccepted.is_closed());
  EXPECT_THROW(old.ping(soon()), std::system_error);
  StoreClient fresh = connect();
  EXPECT_EQ(fresh.num_keys(soon()), 0);
  EXPECT_TRUE(server_.log().empty()) << "the old round's connections are not foreign";
}

TEST(StoreServerStart, NamesThePortThatIsTaken) {
  const StoreServerThread server;
  EventLoop loop;
  try {
    const StoreServer second(loop, {.port = server.port()});
    FAIL() << "two servers on port " << server.port();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), EADDRINUSE);
    EXPECT_NE(std::string(error.what()).find(":" + std::to_string(server.port())), std::string::npos) << error.what();
  }
}

TEST(StoreServerStart, TakesAnotherPortWhereAnyWillDo) {
  EventLoop loop;
  StoreServer first(loop, {});
  StoreServer second(loop, {.port = first.port(), .any_port_will_do = true});
  EXPECT_NE(second.port(), first.port());
  EXPECT_NE(second.port(), 0);
}

/// What a store of torch does: any address of the host, with SO_REUSEADDR.
int errno_of_listening(std::uint16_t port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const bool bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return bound && ::listen(socket.get(), 1) == 0 ? 0 : errno;
}

TEST(StoreServerStart, KeepsAPortForWhoIsToListenOnIt) {
  EventLoop loop;
  for (const StoreReach reach : {StoreReach::kLoopback, StoreReach::kNetwork}) {
    StoreServer keeper(loop, {.reach = reach, .only_keeps_port = true});
    EXPECT_THROW((void)connect_to("127.0.0.1", keeper.port(), soon()), std::system_error) << "it listens itself";
    keeper.reset();
    EXPECT_EQ(errno_of_listening(keeper.port()), 0);
    EXPECT_EQ(errno_of_listening(keeper.port()), 0) << "the worker of the next attempt does it again";
  }
}

TEST(StoreServerStart, TakesAFixedPortAgainRightAfterAnEarlierServer) {
  std::uint16_t port = 0;
  {
    const Fd chosen = open_listening_socket(StoreReach::kLoopback, 0);
    port = port_of_socket(chosen.get());
  }
  {
    StoreServerThread first({.port = port});
    StoreClient client("127.0.0.1", port, soon());
    first.in_loop([](StoreServer& server) { server.reset(); });  // the server closes first: TIME_WAIT is on its side
  }
  const StoreServerThread second({.port = port});
  EXPECT_EQ(second.port(), port);
}

TEST(StoreServerStart, ListensOnLoopbackOnlyUnlessAsked) {
  const Fd loopback = open_listening_socket(StoreReach::kLoopback, 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(loopback.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(address.sin_family, AF_INET);
  EXPECT_EQ(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
  EXPECT_NE(::fcntl(loopback.get(), F_GETFD) & FD_CLOEXEC, 0);

  StoreServerThread network({.reach = StoreReach::kNetwork});
  StoreClient client("127.0.0.1", network.port(), soon());
  EXPECT_EQ(client.add("/k", 1, soon()), 1);
}

TEST(StoreServerStart, AcceptsConnectionsThatSendAtOnce) {
  const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  const RawSocket client(port_of_socket(listener.get()));
  ASSERT_TRUE(poll_until(listener.get(), POLLIN, soon()));
  const Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  ASSERT_EQ(::getsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
  EXPECT_NE(no_delay, 0) << "TCP_NODELAY is inherited from the listener";
}

/// While it lives, this process can open no more descriptors.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const Fd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit none{static_cast<rlim_t>(lowest.get()), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

std::chrono::nanoseconds cpu_time_of_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST(StoreServerDescriptors, WaitsForOneToComeFreeWithoutSpinning) {
  StoreServerThread server;
  std::optional<RawSocket> late;
  std::optional<NoMoreDescriptors> exhausted;
  server.in_loop([&](StoreServer& inside) {
    late.emplace(inside.port());  // in the queue of the listener; the server's end has no descriptor yet
    exhausted.emplace();
  });
  while (server.log().empty()) server.in_loop([](StoreServer&) {});
  std::chrono::nanoseconds before{};
  std::chrono::nanoseconds after{};
  server.in_loop([&](StoreServer&) { before = cpu_time_of_thread(); });
  (void)poll_until(-1, 0, std::chrono::steady_clock::now() + 250ms);  // the window in which it would spin
  server.in_loop([&](StoreServer&) { after = cpu_time_of_thread(); });
  EXPECT_LT(after - before, 50ms);
  ASSERT_EQ(server.log().size(), 1U) << "said once, not with every attempt";
  EXPECT_NE(server.log()[0].find("cannot accept a connection"), std::string::npos) << server.log()[0];

  exhausted.reset();
  ASSERT_TRUE(late->send_handshake());
  ASSERT_TRUE(late->send({StoreCommand::kPing, {}, 1}));
  EXPECT_EQ(late->receive(4).size(), 4U);
}

}  // namespace
}  // namespace lrun::launcher
