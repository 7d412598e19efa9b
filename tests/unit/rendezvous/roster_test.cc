#include "rendezvous/roster.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using test::node_at;
using Ids = std::vector<ConnectionId>;

JoinRecord node_of(int host, int least, int most, std::optional<int> rank = {}) {
  JoinRecord record = node_at("10.0.0." + std::to_string(host), 1, rank);
  record.min_nodes = least;
  record.max_nodes = most;
  return record;
}

/// Launchers 1 to `count` of a job of `least` to `most` nodes, which asked for no rank.
Roster roster_of(int count, int least, int most) {
  Roster roster;
  for (int host = 1; host <= count; ++host) {
    roster.add(static_cast<ConnectionId>(host), {.record = node_of(host, least, most)});
  }
  return roster;
}

Round round_of(const Ids& ids) { return {0, ids, nullptr, true, {}}; }

TEST(Roster, FindsALauncherByItsTokenWhileItIsThere) {
  Roster roster = roster_of(2, 2, 2);
  EXPECT_EQ(roster.find("token of 10.0.0.2"), 2U);
  EXPECT_EQ(roster.remove(2).record.node, "node-10.0.0.2");
  EXPECT_EQ(roster.find("token of 10.0.0.2"), std::nullopt);
  roster.clear();
  EXPECT_EQ(roster.find("token of 10.0.0.1"), std::nullopt);
}

TEST(Roster, SaysWhatItsFirstLauncherKnowsOfTheJob) {
  const Roster roster = roster_of(2, 2, 4);
  EXPECT_EQ(roster.least(), 2);
  EXPECT_EQ(roster.most(), 4);
  EXPECT_EQ(Roster().most(), 1);
}

TEST(Roster, PutsMembersBeforeNewcomers) {
  const Roster roster = roster_of(4, 1, 2);
  EXPECT_EQ(roster.next_members(nullptr), (Ids{1, 2}));
  const Round round = round_of({3, 4});
  EXPECT_EQ(roster.next_members(&round), (Ids{3, 4}));
  EXPECT_EQ(roster.newcomers(&round), (Ids{1, 2}));
}

TEST(Roster, TakesNewcomersByTheRanksThatTheyAskedFor) {
  Roster roster;
  roster.add(1, {.record = node_of(1, 1, 2, 2)});
  roster.add(2, {.record = node_of(2, 1, 2, 0)});
  roster.add(3, {.record = node_of(3, 1, 2, 1)});
  EXPECT_EQ(roster.next_members(nullptr), (Ids{2, 3}));
}

TEST(Roster, LetsANewcomerWaitWhoseRankIsTaken) {
  Roster roster;
  roster.add(1, {.record = node_of(1, 1, 3, 0)});
  roster.add(2, {.record = node_of(2, 1, 3, 0)});
  roster.add(3, {.record = node_of(3, 1, 3)});
  EXPECT_EQ(roster.next_members(nullptr), (Ids{1, 3}));
}

TEST(Roster, LeavesOutThoseWhoseWorkersAreBeingStopped) {
  Roster roster = roster_of(3, 1, 3);
  roster.at(2).busy = true;
  EXPECT_EQ(roster.next_members(nullptr), (Ids{1, 3}));
}

TEST(Roster, LeavesOutWhatIsTooManyForAJob) {
  Roster roster = roster_of(3, 1, 3);
  roster.at(1).record.workers = roster.at(2).record.workers = kMostWorkersOfAJob;
  EXPECT_EQ(roster.next_members(nullptr), (Ids{1}));
}

TEST(Roster, CanGrowWhereANewcomerHasAPlace) {
  const Round two = round_of({1, 2});
  EXPECT_TRUE(roster_of(3, 1, 3).can_grow(two));
  EXPECT_FALSE(roster_of(2, 1, 3).can_grow(two)) << "there is no newcomer";
  EXPECT_FALSE(roster_of(3, 1, 2).can_grow(two)) << "there is no place";
  Roster busy = roster_of(3, 1, 3);
  busy.at(3).busy = true;
  EXPECT_FALSE(busy.can_grow(two));
}

TEST(Roster, NamesTheSubstituteOfTheNodeThatWasLostLast) {
  const Round one = round_of({1});
  EXPECT_EQ(roster_of(1, 1, 3).substitute(one), "");
  EXPECT_EQ(roster_of(2, 1, 3).substitute(one), "") << "it takes the place of the node lost before";
  EXPECT_EQ(roster_of(3, 1, 3).substitute(one), "node-10.0.0.3");
}

TEST(Roster, NamesNoAddressThatOnlyTheNodeItselfHas) {
  Roster roster;
  JoinRecord leader = node_of(1, 2, 2, 0);
  leader.address = "127.0.0.1";
  roster.add(1, {.record = leader});
  EXPECT_EQ(roster.joined_text(), "joined: 'node-10.0.0.1' (1 worker, node rank 0)");
}

TEST(Roster, SaysWhichRanksAreMissing) {
  Roster roster;
  EXPECT_EQ(roster.joined_text(), "no node has joined");
  roster.add(1, {.record = node_of(1, 3, 3, 1)});
  EXPECT_EQ(roster.joined_text(), "joined: 'node-10.0.0.1' from 10.0.0.1 (1 worker, node rank 1)");
  EXPECT_EQ(roster.missing_text(0, {}), "; missing: 2 of 3 nodes (node rank 0, 2)");
  EXPECT_EQ(roster.missing_text(1, {}), "; missing: 3 of 4 nodes (node rank 0, 2, 3)");
  EXPECT_EQ(roster.missing_text(1, {"a", "b", "c"}), "; missing: 3 of 4 nodes (node rank 0 on a, 2 on c, 3)");
  EXPECT_EQ(roster_of(1, 2, 4).missing_text(0, {}), "; missing: 1 of at least 2 nodes");
  EXPECT_EQ(roster_of(2, 2, 4).missing_text(0, {}), "");
}

}  // namespace
}  // namespace lrun::launcher
