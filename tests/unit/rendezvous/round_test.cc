#include "rendezvous/round.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator_harness.h"

namespace lrun::launcher {
namespace {

using test::joined;

Round first_round(const std::vector<ConnectionId>& by_rank) { return {0, by_rank, nullptr, true, {}}; }

TEST(Round, KnowsItsMembersByNodeRank) {
  const Round round = first_round({5, 3});
  EXPECT_EQ(round.member(5).node_rank, 0);
  EXPECT_EQ(round.member(3).node_rank, 1);
  EXPECT_EQ(round.members(), (std::vector<ConnectionId>{3, 5})) << "in the order in which they came";
  EXPECT_EQ(round.members(3), (std::vector<ConnectionId>{5}));
}

TEST(Round, KnowsSinceWhenAMemberIsThereWithoutABreak) {
  const Round first = first_round({1, 2});
  const Round second(1, {2, 3}, &first, true, {});
  const Round third(2, {1, 2, 3}, &second, true, {});
  EXPECT_EQ(third.member(1).since, 2) << "it came back";
  EXPECT_EQ(third.member(2).since, 0);
  EXPECT_EQ(third.member(3).since, 1);
}

TEST(Round, IsOverWhenAllThatAreThereHaveReported) {
  Round round = first_round({1, 2, 3});
  round.report(1, "a", joined);
  round.report(1, "again", joined);
  EXPECT_FALSE(round.all_reported());
  round.remove(3);
  round.report(2, "b", joined);
  EXPECT_TRUE(round.all_reported());
  EXPECT_EQ(round.finish(joined), "a|b|") << "an empty report stands for the missing one";
}

TEST(Round, CountsNoReportOfAMemberThatIsGone) {
  Round round = first_round({1, 2});
  round.report(1, "a", joined);
  EXPECT_TRUE(round.remove(1)->reported);
  EXPECT_FALSE(round.all_reported());
  round.report(2, "b", joined);
  EXPECT_EQ(round.finish(joined), "a|b") << "what it reported counts";
}

TEST(Round, KeepsNoMoreThanAMegabyteOfReports) {
  std::size_t longest = 0;
  const MergeReports merge = [&](const std::vector<std::string>& reports) {
    std::size_t bytes = 0;
    for (const std::string& report : reports) bytes += report.size();
    longest = std::max(longest, bytes);
    return std::string("all");
  };
  std::vector<ConnectionId> ids;
  for (ConnectionId id = 1; id <= 100; ++id) ids.push_back(id);
  Round round = first_round(ids);
  for (const ConnectionId id : ids) round.report(id, std::string(kMostReportBytes, 'x'), merge);
  EXPECT_EQ(round.finish(merge), "all");
  EXPECT_LE(longest, (std::size_t{1} << 20U) + kMostReportBytes);
}

TEST(Round, IsStoppedOnce) {
  Round round = first_round({1, 2});
  EXPECT_TRUE(round.stop());
  EXPECT_FALSE(round.stop());
  (void)round.finish(joined);
  EXPECT_FALSE(round.is_stopped()) << "from here on a stop is about the next round";
  EXPECT_TRUE(round.stop());
}

TEST(Round, IsInterruptedByNewcomersOnlyWhileAllOfItRuns) {
  Round stopped = first_round({1, 2});
  Round smaller = stopped;
  Round reported = stopped;
  EXPECT_TRUE(stopped.can_be_interrupted());
  stopped.stop();
  smaller.end_early();
  reported.report(1, "", joined);
  for (const Round& round : {stopped, smaller, reported}) EXPECT_FALSE(round.can_be_interrupted());
}

TEST(Round, GoesOnWhenAMemberIsReady) {
  Round round = first_round({1, 2});
  (void)round.finish(joined);
  EXPECT_FALSE(round.goes_on());
  EXPECT_TRUE(round.make_ready(1));
  EXPECT_FALSE(round.make_ready(1));
  EXPECT_TRUE(round.goes_on());
  EXPECT_FALSE(round.all_ready());
  round.remove(2);
  EXPECT_TRUE(round.all_ready());
  round.remove(1);
  EXPECT_TRUE(round.goes_on()) << "it was asked for";
}

TEST(Round, IsSettledWhenAllWithWhichItBeganKnowOfIt) {
  const Round before = first_round({1, 2});
  Round round(1, {1, 2}, &before, false, {});
  EXPECT_FALSE(round.acknowledge(1));
  EXPECT_FALSE(round.acknowledge(1)) << "one member counts once";
  EXPECT_TRUE(round.acknowledge(2));
  EXPECT_TRUE(round.is_known_to_all());
  EXPECT_FALSE(round.acknowledge(2)) << "it is known";
}

TEST(Round, IsNotKnownToAllWhereAMemberIsLostThatDidNotKnowOfIt) {
  const Round before = first_round({1, 2});
  Round round(1, {1, 2}, &before, false, {});
  round.remove(2);
  EXPECT_FALSE(round.acknowledge(1)) << "the other may go on from the round before";
}

TEST(Round, ThatIsLostGoesOnWithThoseThatComeBack) {
  Round round = Round::lost(3);
  EXPECT_TRUE(round.goes_on()) << "nobody asked for its end";
  round.readmit(7, 3);
  round.readmit(8, 4);
  EXPECT_EQ(round.number(), 4) << "one of them has seen a later round";
  EXPECT_EQ(round.members(), (std::vector<ConnectionId>{7, 8}));
  EXPECT_FALSE(round.all_ready());
}

}  // namespace
}  // namespace lrun::launcher
