#include "rendezvous/round_part.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

LauncherMessage begin_of(int round, bool known_to_all, std::optional<int> leader) {
  return {.kind = LauncherMessage::Kind::kBegin,
          .round = round,
          .known_to_all = known_to_all,
          .membership = Membership{.round = round, .leader = leader}};
}

TEST(RoundPart, BeginsAnewWithEachRound) {
  RoundPart part;
  EXPECT_FALSE(part.has_begun());
  EXPECT_EQ(part.round(), 0);
  part.is_spare = true;
  part.report = "it failed";
  part.ready = LauncherMessage();
  part.lost_clock = ClockOffset();
  part.begin(begin_of(3, true, 0));
  EXPECT_EQ(part, (RoundPart{.membership = Membership{.round = 3, .leader = 0}, .known_to_all = true}));
  EXPECT_EQ(part.round(), 3);
  EXPECT_FALSE(part.is_leaderless());
}

TEST(RoundPart, CanFailOverFromASettledRoundThatHasALeader) {
  RoundPart part;
  EXPECT_FALSE(part.can_fail_over());
  part.begin(begin_of(3, false, 0));
  EXPECT_FALSE(part.can_fail_over()) << "some know only of the round before";
  part.begin(begin_of(4, true, std::nullopt));
  EXPECT_FALSE(part.can_fail_over()) << "etcd knows who leads";
  part.begin(begin_of(5, true, 0));
  EXPECT_TRUE(part.can_fail_over());
}

}  // namespace
}  // namespace lrun::launcher
