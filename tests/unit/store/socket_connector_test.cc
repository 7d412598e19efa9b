#include "store/socket_connector.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "store/listening_socket.h"
#include "support/patience.h"

namespace lrun::launcher {
namespace {

using test::kPatience;

SocketConnector::Result connect(SocketConnector::Target target) {
  EventLoop loop;
  SocketConnector connector(loop);
  std::optional<SocketConnector::Result> result;
  target.limit = kPatience;
  connector.connect(std::move(target), [&](SocketConnector::Result told) {
    result = std::move(told);
    loop.stop();
  });
  const EventLoop::Timer limit = loop.after(2 * kPatience, [&] { loop.stop(); });
  loop.run();
  EXPECT_TRUE(result) << "nothing happened";
  return result ? std::move(*result) : SocketConnector::Result();
}

TEST(SocketConnector, ConnectsToAnAddressAndToAName) {
  const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  const std::uint16_t port = port_of_socket(listener.get());
  for (const char* const host : {"127.0.0.1", "a-name"}) {
    const SocketConnector::Result result = connect(
        {.host = host, .port = port, .find_address = [](const std::string&) { return std::string("127.0.0.1"); }});
    EXPECT_TRUE(result.socket) << result.trouble;
    EXPECT_EQ(result.address, "127.0.0.1");
    EXPECT_EQ(result.trouble, "");
  }
}

TEST(SocketConnector, SaysThatNobodyListens) {
  Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  const std::uint16_t port = port_of_socket(listener.get());
  listener.reset();
  const SocketConnector::Result result = connect({.host = "127.0.0.1", .port = port});
  EXPECT_FALSE(result.socket);
  EXPECT_EQ(result.error, ECONNREFUSED);
  EXPECT_EQ(result.address, "127.0.0.1");
  EXPECT_EQ(result.trouble, "cannot connect to 127.0.0.1 port " + std::to_string(port) + ": Connection refused");
}

TEST(SocketConnector, SaysThatANameIsUnknown) {
  const SocketConnector::Result result =
      connect({.host = "nowhere", .port = 1, .find_address = [](const std::string&) { return std::string(); }});
  EXPECT_FALSE(result.socket);
  EXPECT_EQ(result.address, "");
  EXPECT_TRUE(result.is_unknown);
  EXPECT_EQ(result.trouble, "there is no host 'nowhere'");
}

TEST(SocketConnector, SaysThatTheNameServiceDoesNotKnow) {
  const SocketConnector::Result result =
      connect({.host = "nowhere", .port = 1, .find_address = [](const std::string&) -> std::string {
                 throw std::runtime_error("no answer");
               }});
  EXPECT_FALSE(result.is_unknown) << "it may exist";
  EXPECT_EQ(result.trouble, "no address of 'nowhere' can be found");
}

TEST(SocketConnector, MayBeDestroyedByTheOneItTells) {
  EventLoop loop;
  auto connector = std::make_unique<SocketConnector>(loop);
  connector->connect({.host = "127.0.0.1", .port = 1, .limit = kPatience}, [&](const SocketConnector::Result&) {
    connector.reset();
    loop.stop();
  });
  loop.run();
  EXPECT_FALSE(connector);
}

}  // namespace
}  // namespace lrun::launcher
