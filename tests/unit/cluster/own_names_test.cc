#include "cluster/own_names.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

namespace lrun::launcher {
namespace {

using Names = std::vector<std::string>;

TEST(OwnNames, AreLocalhostLoopbackAddressesAndTheHostsName) {
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const Names own{"localhost", "LocalHost",       "127.0.0.1",        "127.8.8.8",
                  "::1",       "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", host};
  EXPECT_EQ(own_names(own), own);
}

TEST(OwnNames, AreNotOtherAddresses) {
  EXPECT_EQ(own_names({"0.0.0.0", "192.0.2.1", "::2", "2001:db8::1"}), Names{}) << "these are nobody's";
}

TEST(OwnNames, AreNotNamesThatNobodyKnows) {
  EXPECT_EQ(own_names({"no-such-host.invalid", "", ":"}), Names{});
  EXPECT_EQ(own_names({}), Names{});
}

TEST(HasIPv6Loopback, IsWhetherOneCanListenThere) {
  const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any_port{};
  any_port.sin6_family = AF_INET6;
  any_port.sin6_addr = in6addr_loopback;
  const bool can = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) == 0;
  EXPECT_EQ(has_ipv6_loopback(), can);
}

TEST(OwnNames, AreAnothersOnlyWhereThatIsKnown) {
  for (const char* const name : {"192.0.2.1", "2001:db8::1"}) EXPECT_TRUE(is_of_another_host(name)) << name;
  for (const char* const name : {"localhost", "127.8.8.8", "no-such-host.invalid", ""}) {
    EXPECT_FALSE(is_of_another_host(name)) << name;
  }
}

TEST(InterfaceOf, IsTheOneThatHasTheAddress) {
  const std::string loopback = interface_of("127.0.0.1");
  EXPECT_NE(loopback, "");
  EXPECT_EQ(interface_of("127.8.8.8"), loopback);
  for (const char* const nobodys : {"192.0.2.1", "2001:db8::1", "localhost", ""}) EXPECT_EQ(interface_of(nobodys), "");
}

}  // namespace
}  // namespace lrun::launcher
