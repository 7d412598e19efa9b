#include "remote/reached_hosts.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

ReachedHost reached(const std::string& name, const std::string& own, const std::string& head) {
  return {name, false, {0, own, head, {}}};
}

const ReachedHost kHere{"head", true, {}};
const ReachedHost kFar = reached("far", "10.0.0.3", "10.0.0.1");

TEST(RendezvousAddress, IsWhereSshReachedTheFirstHost) {
  EXPECT_EQ(rendezvous_address(reached("a", "10.0.0.2", "10.0.0.1"), kFar), "10.0.0.2");
  EXPECT_EQ(rendezvous_address(reached("a", "10.0.0.2", "10.0.0.1"), kHere), "10.0.0.2");
  EXPECT_EQ(rendezvous_address(reached("a", "", ""), kFar), "a") << "not every --ssh tells its addresses";
}

TEST(RendezvousAddress, OfThisMachineIsThatOfItsConnectionsAtTheOtherEnd) {
  EXPECT_EQ(rendezvous_address(kHere, kFar), "10.0.0.1");
  EXPECT_EQ(rendezvous_address(kHere, reached("far", "", "")), "head");
  EXPECT_EQ(rendezvous_address(kHere, kHere), "127.0.0.1");
}

TEST(RendezvousAddress, IsNoLoopbackAddressForAnotherMachine) {
  for (const char* const loopback : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"}) {
    const ReachedHost first = reached("me", loopback, loopback);
    EXPECT_EQ(rendezvous_address(first, kFar), "10.0.0.1") << loopback;
    EXPECT_EQ(rendezvous_address(first, reached("far", "", "")), "me") << loopback;
    EXPECT_EQ(rendezvous_address(first, kHere), loopback);
    EXPECT_EQ(rendezvous_address(first, reached("me too", "127.0.0.1", "127.0.0.1")), loopback);
  }
}

using Names = std::vector<std::string>;

ReachedHost on(const std::string& name, const std::string& machine) { return {name, false, {0, "", "", machine}}; }

TEST(SameMachine, IsKnownByItsIdentityAndNotByNames) {
  const std::vector<ReachedHost> hosts{on("a", "1"), on("b", "2"), on("alias-of-a", "1"), on("c", "3")};
  EXPECT_EQ(names_of_machine(hosts, 0), (Names{"a", "alias-of-a"}));
  EXPECT_EQ(names_of_machine(hosts, 2), (Names{"a", "alias-of-a"})) << "the same for both";
  EXPECT_EQ(names_of_machine(hosts, 1), Names());
}

TEST(SameMachine, IsUnknownWhereHostsDoNotSayWhichTheyAre) {
  EXPECT_EQ(names_of_machine({on("a", ""), on("b", "")}, 0), Names());
}

}  // namespace
}  // namespace lrun::launcher
