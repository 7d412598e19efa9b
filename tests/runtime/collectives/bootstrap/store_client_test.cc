// The store's client waits no longer than its deadline, whatever the server does.

#include "runtime/collectives/bootstrap/store_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

SteadyTime in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// A socket of this process at a port that the kernel chose.
class Socket {
 public:
  Socket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    require(::bind(fd_.get(), any, size) == 0 && ::getsockname(fd_.get(), any, &size) == 0, "bind a socket");
    port_ = ntohs(address.sin_port);
  }

  void listen() const { require(::listen(fd_.get(), 8) == 0, "listen"); }
  [[nodiscard]] Fd accept() const { return Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  [[nodiscard]] StoreAddress address() const { return {"127.0.0.1", port_, false}; }

 private:
  Fd fd_;
  std::uint16_t port_ = 0;
};

/// Runs `function`, which is to end by itself soon after 300 ms. \return  what it throws.
std::string error_within_the_deadline(const std::function<void()>& function) {
  const auto begin = std::chrono::steady_clock::now();
  std::string error = error_of(function);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << error;
  return error;
}

TEST(StoreClient, GivesUpAtTheDeadlineWhereNobodyListens) {
  const Socket silent;
  EXPECT_THAT(error_within_the_deadline([&] { StoreClient(silent.address(), in(300ms)); }),
              AllOf(StartsWith("CollectiveTimeout: cannot reach the store at 127.0.0.1:"), HasSubstr("refused")));
}

TEST(StoreClient, GivesUpAtTheDeadlineOnAServerThatIsSilentFromTheStart) {
  const Socket silent;
  silent.listen();
  EXPECT_THAT(
      error_within_the_deadline([&] { StoreClient(silent.address(), in(300ms)); }),
      AllOf(StartsWith("CollectiveTimeout: cannot reach the store at 127.0.0.1:"), HasSubstr("does not answer")));
}

TEST(StoreClient, RefusesAServerOfAnotherKind) {
  const Socket other;
  other.listen();
  std::thread server([&] {
    const Fd connection = other.accept();
    EXPECT_EQ(::send(connection.get(), "SSH-2.0-", 8, MSG_NOSIGNAL), 8);
    char byte = 0;
    while (::recv(connection.get(), &byte, 1, 0) > 0) {
    }
  });
  EXPECT_THAT(error_within_the_deadline([&] { StoreClient(other.address(), in(10s)); }),
              AllOf(StartsWith("error: cannot reach"), HasSubstr("not a TCPStore")));
  server.join();
}

/// A process that serves a store until it is stopped.
class Server {
 public:
  Server()
      : process_([this] {
          const StoreClient store({"127.0.0.1", 0, true}, in(10s));
          const std::uint16_t port = store.port();
          require(::write(pipe_.write.get(), &port, sizeof port) == sizeof port, "tell the port");
          for (;;) ::pause();
        }) {
    require(::read(pipe_.read.get(), &port_, sizeof port_) == sizeof port_, "hear the port");
  }

  [[nodiscard]] StoreAddress address() const { return {"127.0.0.1", port_, false}; }
  void stop() const {
    ::kill(process_.pid(), SIGSTOP);
    siginfo_t state{};
    require(::waitid(P_PID, static_cast<id_t>(process_.pid()), &state, WSTOPPED | WNOWAIT) == 0, "the server stops");
  }
  void kill() const { process_.kill(); }

 private:
  Pipe pipe_ = make_pipe();
  RankProcess process_;
  std::uint16_t port_ = 0;
};

TEST(StoreClient, GivesUpAtTheDeadlineOnAServerThatIsStopped) {
  const Server server;
  StoreClient client(server.address(), in(10s));
  client.set("key", "value", in(10s));
  EXPECT_EQ(client.try_get("key", in(10s)), "value");
  server.stop();
  EXPECT_THAT(error_within_the_deadline([&] { client.get("key", in(300ms)); }),
              AllOf(StartsWith("CollectiveTimeout: cannot read from the store at "), HasSubstr("does not answer")));
  EXPECT_THAT(error_within_the_deadline([&] { client.try_get("key", in(10s)); }),
              StartsWith("error: cannot read from the store at "));
}

TEST(StoreClient, SaysThatTheServerHasGone) {
  const Server server;
  StoreClient client(server.address(), in(10s));
  server.kill();
  EXPECT_THAT(error_within_the_deadline([&] { client.get("key", in(10s)); }),
              StartsWith("error: cannot read from the store at "));
}

TEST(StoreClient, FindsTheServerByItsName) {
  const Server server;
  StoreAddress address = server.address();
  address.host = "localhost";
  StoreClient client(address, in(10s));
  EXPECT_EQ(client.try_get("nothing", in(10s)), std::nullopt);
  EXPECT_EQ(client.get("nothing", in(50ms)), std::nullopt);
}

}  // namespace
}  // namespace lrun::detail::testing
