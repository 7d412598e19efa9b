#include "wire/connect.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>

#include "store/listening_socket.h"
#include "support/patience.h"

namespace lrun {
namespace {

using launcher::open_listening_socket;
using launcher::port_of_socket;
using launcher::StoreReach;

std::uint16_t free_port() { return port_of_socket(open_listening_socket(StoreReach::kLoopback, 0).get()); }

TEST(ConnectTo, SaysWhereItCannotConnectAndWhy) {
  const std::uint16_t port = free_port();
  try {
    (void)connect_to("127.0.0.1", port, test::soon());
    FAIL() << "nobody listens on port " << port;
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ECONNREFUSED) << error.what();
    EXPECT_NE(std::string(error.what()).find(std::to_string(port)), std::string::npos) << error.what();
  }
}

TEST(ConnectTo, RefusesANameInsteadOfResolvingIt) {
  EXPECT_THROW((void)connect_to("localhost", 1, test::soon()), std::system_error);
}

TEST(ConnectTo, TellsBothEnds) {
  const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  const Fd socket = connect_to("127.0.0.1", port_of_socket(listener.get()), test::soon());
  const ConnectionEnds ends = ends_of_connection(socket.get());
  EXPECT_EQ(ends.own, "127.0.0.1");
  EXPECT_EQ(ends.peer, "127.0.0.1");
}

TEST(ConnectionError, IsARefusalForASocketThatIsConnectedToItself) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket.get(), any, size), 0);
  ASSERT_EQ(::getsockname(socket.get(), any, &size), 0);
  ASSERT_EQ(::connect(socket.get(), any, size), 0) << "Linux opens such a connection without a listener";
  EXPECT_EQ(connection_error(socket.get()), ECONNREFUSED);
}

}  // namespace
}  // namespace lrun
