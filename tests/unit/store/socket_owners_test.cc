#include "store/socket_owners.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/clock.h"
#include "store/listening_socket.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using Where = ConnectionPeer::Where;

class SocketOwnersTest : public ::testing::Test {
 protected:
  /// A connection to our own listener, and our end of it.
  struct Pair {
    Fd client;
    Fd accepted;
  };
  static Pair connect(const std::string& address, StoreReach reach = StoreReach::kLoopback) {
    const Fd listener = open_listening_socket(reach, 0);
    Pair pair;
    pair.client = connect_to(address, port_of_socket(listener.get()), steady_now() + std::chrono::seconds(10));
    (void)poll_until(listener.get(), POLLIN, steady_now() + std::chrono::seconds(10));
    pair.accepted = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return pair;
  }
  static std::uint64_t inode_of(int fd) {
    struct stat status {};
    ::fstat(fd, &status);
    return status.st_ino;
  }

  ConnectionPeer peer_of(const Fd& socket) {
    const std::optional<ConnectionPlace> place = place_of_connection(socket.get());
    return place ? owners_.peer_of(*place) : ConnectionPeer{Where::kGone};
  }

  SocketOwners owners_;
};

TEST_F(SocketOwnersTest, SayWhoseSocketIsAtTheOtherEnd) {
  const Pair pair = connect("127.0.0.1");
  EXPECT_EQ(peer_of(pair.accepted), (ConnectionPeer{Where::kHere, ::geteuid(), inode_of(pair.client.get())}));
  EXPECT_EQ(peer_of(pair.client).inode, inode_of(pair.accepted.get())) << "from either end";
}

TEST_F(SocketOwnersTest, KnowAnIPv4AddressThatIsMappedIntoIPv6) {
  const Pair pair = connect("127.0.0.1", StoreReach::kNetwork);
  EXPECT_EQ(peer_of(pair.accepted).inode, inode_of(pair.client.get()));
}

TEST_F(SocketOwnersTest, KnowIPv6) {
  std::optional<Pair> pair;
  try {
    pair = connect("::1", StoreReach::kNetwork);
  } catch (const std::system_error& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(peer_of(pair->accepted).inode, inode_of(pair->client.get()));
}

TEST_F(SocketOwnersTest, SayThatTheOtherEndIsGoneHoweverItWent) {
  for (const bool by_reset : {false, true}) {
    Pair pair = connect("127.0.0.1");
    const linger reset{by_reset ? 1 : 0, 0};
    ::setsockopt(pair.client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ASSERT_EQ(::send(pair.client.get(), "x", 1, 0), 1);
    pair.client.reset();
    EXPECT_EQ(peer_of(pair.accepted).where, Where::kGone) << "by reset: " << by_reset;
  }
}

/// As /proc/net/tcp of a machine that is little-endian has them.
constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 x 100 0 0 10 0\n"
    "   1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 4711 1 x 20 4 30 10 "
    "-1\n"
    "   2: 0100007F:9C41 0100007F:1F90 06 00000000:00000000 03:00001234 00000000     0        0 0 3 x\n"
    "   3: 0000000000000000FFFF00000100007F:9C42 0000000000000000FFFF00000100007F:1F90 01 0:0 00:0 0  1002        0 "
    "4712 1 x\n"
    "   4: 0100007F:9C43 0100007F:1F90 01 00000000:00000000\n";

ConnectionPlace from_port(std::uint16_t port) {
  const std::uint32_t loopback = 0x0100007F;  // as the table has it
  return {.peer = {loopback}, .own = {loopback}, .peer_port = htons(port), .own_port = htons(8080)};
}

TEST(FindSocket, ReadsTheKernelsTables) {
  EXPECT_EQ(find_socket(kTable, from_port(40'000)), (ConnectionPeer{Where::kHere, 1001, 4711}));
  EXPECT_EQ(find_socket(kTable, from_port(40'001)), (ConnectionPeer{Where::kGone, 0, 0}));
  EXPECT_EQ(find_socket(kTable, from_port(40'002)), (ConnectionPeer{Where::kHere, 1002, 4712})) << "mapped into IPv6";
  EXPECT_EQ(find_socket(kTable, from_port(40'003)), std::nullopt) << "a line that is cut";
  EXPECT_EQ(find_socket(kTable, from_port(40'004)), std::nullopt);
  EXPECT_EQ(find_socket("", from_port(40'000)), std::nullopt);
}

}  // namespace
}  // namespace lrun::launcher
