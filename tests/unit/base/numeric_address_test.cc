#include "base/numeric_address.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(LoopbackAddress, IsWhatLocalhostAndTheInterfacesOwnAddressesMean) {
  EXPECT_EQ(loopback_address_of("localhost"), "127.0.0.1");
  EXPECT_EQ(loopback_address_of("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(loopback_address_of("127.255.3.4"), "127.255.3.4");
  EXPECT_EQ(loopback_address_of("::1"), "::1");
  EXPECT_EQ(loopback_address_of("0:0:0:0:0:0:0:1"), "::1");
}

TEST(LoopbackAddress, IsNoOtherAddressAndNoName) {
  for (const char* const other : {"", "128.0.0.1", "10.127.0.1", "0.0.0.0", "::", "::2", "::ffff:127.0.0.1", "127.1",
                                  "127.example.com", "node0", "[::1]"}) {
    EXPECT_EQ(loopback_address_of(other), "") << other;
  }
}

TEST(WithoutBrackets, IsAnAddressOfIPv6AsTheResolverTakesIt) {
  EXPECT_EQ(without_brackets("[::1]"), "::1");
  EXPECT_EQ(without_brackets("[0:0:0:0:0:0:0:1]"), "0:0:0:0:0:0:0:1");
  EXPECT_EQ(without_brackets("[fe80::1%eth0]"), "fe80::1%eth0");
}

TEST(WithoutBrackets, LeavesEverythingElseAlone) {
  for (const char* const other :
       {"", "[", "[]", "::1", "node0", "10.0.0.1", "[node0]", "[10.0.0.1]", "[::1", "[::1]:2"}) {
    EXPECT_EQ(without_brackets(other), other);
  }
}

}  // namespace
}  // namespace lrun
