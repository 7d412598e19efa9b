#include "remote/meeting_address.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

ReachedHost reached(const std::string& name, const std::string& own, const std::string& head) {
  return {name, false, {0, own, head, {}}};
}

const ReachedHost kHere{"head", true, {}};
const ReachedHost kFar = reached("far", "10.0.0.3", "10.0.0.1");

TEST(MeetingAddress, IsWhereSshReachedTheFirstHost) {
  EXPECT_EQ(meeting_address(reached("a", "10.0.0.2", "10.0.0.1"), kFar), "10.0.0.2");
  EXPECT_EQ(meeting_address(reached("a", "10.0.0.2", "10.0.0.1"), kHere), "10.0.0.2");
  EXPECT_EQ(meeting_address(reached("a", "", ""), kFar), "a") << "not every --ssh tells its addresses";
}

TEST(MeetingAddress, OfThisMachineIsWhereTheOthersSeeItsConnectionComeFrom) {
  EXPECT_EQ(meeting_address(kHere, kFar), "10.0.0.1");
  EXPECT_EQ(meeting_address(kHere, reached("far", "", "")), "head");
  EXPECT_EQ(meeting_address(kHere, kHere), "127.0.0.1");
}

TEST(MeetingAddress, IsNoLoopbackAddressForAnotherMachine) {
  for (const char* const loopback : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"}) {
    const ReachedHost first = reached("me", loopback, loopback);
    EXPECT_EQ(meeting_address(first, kFar), "10.0.0.1") << loopback;
    EXPECT_EQ(meeting_address(first, reached("far", "", "")), "me") << loopback;
    EXPECT_EQ(meeting_address(first, kHere), loopback);
    EXPECT_EQ(meeting_address(first, reached("me too", "127.0.0.1", "127.0.0.1")), loopback);
  }
}

}  // namespace
}  // namespace lrun::launcher
