// Who may go on with a job whose meeting is lost, and who holds it then.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rendezvous/successor_search.h"
#include "told_meeting.h"

namespace lrun::launcher {
namespace {

using test::node_at;
using test::ToldMeeting;
using Kind = LauncherMessage::Kind;
using Step = SuccessorSearch::Step;

TEST(Ballot, NeedsMoreThanHalfWhereTheHolderIsSilent) {
  struct {
    int members, votes;
    bool carried;
  } const rows[] = {
      {1, 1, true}, {2, 1, false}, {3, 1, false}, {3, 2, true},  {4, 2, false},
      {4, 3, true}, {5, 2, false}, {5, 3, true},  {6, 3, false}, {7, 4, true},
  };
  for (const auto& row : rows) {
    for (const bool first : {false, true}) {
      const Ballot ballot{.members = row.members, .proved = false, .first_in_line = first};
      EXPECT_EQ(ballot.carried_by(row.votes), row.carried) << row.votes << " of " << row.members;
    }
  }
}

TEST(Ballot, NeedsHalfOfTheOthersAndTheFirstInLineWhereTheHolderIsDead) {
  struct {
    int members, votes;
    bool first, carried;
  } const rows[] = {
      {2, 1, true, true},  {3, 1, true, true},   {3, 1, false, false}, {3, 2, false, true}, {4, 1, true, false},
      {4, 2, false, true}, {5, 2, false, false}, {5, 2, true, true},   {5, 3, false, true}, {6, 2, true, false},
  };
  for (const auto& row : rows) {
    const Ballot ballot{.members = row.members, .proved = true, .first_in_line = row.first};
    EXPECT_EQ(ballot.carried_by(row.votes), row.carried)
        << row.votes << " of " << row.members << (row.first ? ", the first" : "");
  }
}

/// However a round is divided, at most one part is large enough, and its holder's counts.
TEST(Ballot, IsNeverCarriedInTwoParts) {
  for (int members = 1; members <= 9; ++members) {
    for (int part = 1; part < members; ++part) {
      const int rest = members - part;
      Majority held;
      held.round_began(0, members);
      for (int i = 0; i < part; ++i) held.lost(0);
      EXPECT_FALSE(held.stands() && Ballot{.members = members}.carried_by(part)) << part << " of " << members;
      EXPECT_TRUE(held.stands() || Ballot{.members = members}.carried_by(part)) << part << " of " << members;
      for (const bool first : {false, true}) {  // in the one part, where some have seen the holder's death
        const Ballot sure{.members = members, .proved = true, .first_in_line = first};
        const Ballot unsure{.members = members};
        const Ballot other{.members = members, .proved = true, .first_in_line = !first};
        EXPECT_FALSE(sure.carried_by(part) && unsure.carried_by(rest - 1)) << part << " of " << members;
        EXPECT_FALSE(sure.carried_by(part) && other.carried_by(rest - 1)) << part << " of " << members;
      }
    }
  }
}

TEST(Majority, IsLostWithMoreThanHalfOfTheMembers) {
  Majority held;
  held.round_began(0, 4);
  held.lost(0);
  held.lost(0);
  EXPECT_TRUE(held.stands());
  held.lost(0);
  EXPECT_FALSE(held.stands());
}

TEST(Majority, CountsARoundUntilAllKnowOfALaterOne) {
  Majority held;
  held.round_began(0, 5);
  held.lost(0);
  held.lost(0);
  held.round_began(1, 3);
  Majority known = held;
  held.lost(0);
  EXPECT_FALSE(held.stands()) << "three of the five that know of the first round could go on from it";
  known.last_round_is_known();
  known.lost(0);
  EXPECT_TRUE(known.stands());
  known.lost(1);
  EXPECT_FALSE(known.stands());
}

TEST(Majority, DoesNotCountWhoWasNotThereYet) {
  Majority held;
  held.round_began(0, 1);
  held.round_began(1, 2);
  held.lost(1);
  EXPECT_TRUE(held.stands());
}

Successor successor(int rank) { return {rank, std::string(1, static_cast<char>('a' + rank)), "10.0.0.1", 7000 + rank}; }

/// Four members, the one with this rank holds the meeting, and we have that one.
SuccessorSearch succession(int holder, int self) {
  Membership round{.num_nodes = 4, .leader = holder, .self = {.node_rank = self}};
  for (int rank = 0; rank < 4; ++rank) {
    if (rank != holder) round.successors.push_back(successor(rank));
  }
  return SuccessorSearch(round);
}

Step join(int rank) { return {.kind = Step::Kind::kJoin, .other = successor(rank)}; }
Step hold(const Ballot& ballot) { return {.kind = Step::Kind::kLead, .ballot = ballot}; }

TEST(SuccessorSearch, MakesSureOfTheDeathAndTurnsToTheFirst) {
  SuccessorSearch member = succession(0, 3);
  EXPECT_EQ(member.leader_lost(true), (Step{.kind = Step::Kind::kProbe}));
  EXPECT_EQ(member.probed(true), join(1));
  EXPECT_EQ(member.out_of_reach(), join(2));
  EXPECT_EQ(member.out_of_reach(), hold({.members = 4, .leader = 0, .proved = true}));
}

TEST(SuccessorSearch, HoldsTheMeetingWhereItComesFirst) {
  for (const bool refused : {false, true}) {
    SuccessorSearch first = succession(0, 1);
    (void)first.leader_lost(true);
    EXPECT_EQ(first.probed(refused), hold({.members = 4, .leader = 0, .proved = refused, .first_in_line = true}));
  }
  EXPECT_EQ(succession(2, 0).leader_lost(false), hold({.members = 4, .leader = 2, .first_in_line = true}));
}

TEST(SuccessorSearch, DoesNotAskWhetherASilentHolderIsDead) { EXPECT_EQ(succession(1, 2).leader_lost(false), join(0)); }

TEST(SuccessorSearch, EndsWhereNobodyOfTheLineAnswers) {
  Membership round{.num_nodes = 40, .leader = 0, .self = {.node_rank = 30}};
  round.successors = {successor(1)};
  SuccessorSearch member(round);
  EXPECT_EQ(member.leader_lost(false), join(1));
  EXPECT_EQ(member.out_of_reach().why, "no other node that can hold the meeting is in reach");
}

TEST(SuccessorSearch, KeepsItsVoteUnlessWhoGotItIsDead) {
  SuccessorSearch voter = succession(0, 3);
  (void)voter.leader_lost(false);
  voter.joined();
  EXPECT_TRUE(voter.has_voted());
  SuccessorSearch of_dead = voter;
  EXPECT_EQ(voter.successor_lost(false).kind, Step::Kind::kGiveUp);
  EXPECT_EQ(of_dead.successor_lost(true), (Step{.kind = Step::Kind::kProbe}));
  SuccessorSearch of_living = of_dead;
  EXPECT_EQ(of_dead.probed(true), join(2));
  EXPECT_FALSE(of_dead.has_voted());
  EXPECT_EQ(of_living.probed(false).why, "node b, which was to hold the next meeting, is out of reach, too");
}

/// A meeting that goes on after round 3 of so many members, of which that of rank 0 held the last one.
ToldMeeting with_ballot(int members, bool proved) {
  ToldMeeting meeting(1, 4);
  meeting.guard_majority();
  meeting.coordinator.resume({.round = 3, .attempt = 1},
                             Ballot{.members = members, .proved = proved, .first_in_line = true}, meeting.now);
  return meeting;
}

void vote(ToldMeeting& meeting, int rank, int round = 3) {
  JoinRecord record = node_at("10.0.0." + std::to_string(rank + 1));
  record.min_nodes = 1;
  record.max_nodes = 4;
  const auto id = static_cast<LauncherId>(rank + 1);
  meeting.coordinator.received(
      id, {.kind = Kind::kJoin, .round = round, .resumes = true, .node_rank = rank, .join = record}, meeting.now);
  meeting.coordinator.received(id, {.kind = Kind::kReady, .round = round + 1, .attempt = 1}, meeting.now);
}

TEST(Coordinator, BeginsWhereEnoughMembersHaveComeBack) {
  ToldMeeting meeting = with_ballot(3, false);
  vote(meeting, 1);
  meeting.pass(Duration(7000));
  EXPECT_EQ(meeting.said(), "") << "one of three is no majority";
  EXPECT_EQ(meeting.coordinator.deadline(), meeting.now + Duration(3000));
  vote(meeting, 2);
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "begin>2 begin>3");
}

TEST(Coordinator, EndsAJobOfWhichNoMajorityComesBack) {
  ToldMeeting meeting = with_ballot(2, false);
  vote(meeting, 1);
  meeting.join(7, node_at("10.0.0.7"));
  vote(meeting, 0, 2);
  meeting.pass(Duration(9999));
  EXPECT_EQ(meeting.said(), "spare>7") << "neither newcomers nor who was not in the round count";
  meeting.pass(Duration(1));
  EXPECT_EQ(meeting.said(), "no_meeting>7 ended>1 ended>2") << "who is no member may begin the job elsewhere";
  for (const test::Told& told : meeting.sent) {
    EXPECT_EQ(told.message.text,
              "1 of 2 nodes is no majority, and a job that is cut off must not go on twice; three nodes, or "
              "'--rdzv-backend etcd', survive the silence of one");
  }
  meeting.join(8, node_at("10.0.0.8"));
  EXPECT_EQ(meeting.said(), "no_meeting>8") << "it was invited a moment ago";
  EXPECT_TRUE(meeting.coordinator.over());
}

TEST(Coordinator, BeginsAloneWhereTheOtherIsDead) {
  ToldMeeting meeting = with_ballot(2, true);
  vote(meeting, 1);
  EXPECT_EQ(meeting.said(), "");
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "begin>2") << "all that are left are back: only the last call is waited for";
}

/// Three members and who of them holds the meeting.
ToldMeeting guarded() {
  ToldMeeting meeting(1, 3);
  meeting.led_by("token of 10.0.0.2", true);
  for (const int host : {2, 1, 3})
    meeting.join(static_cast<LauncherId>(host), node_at("10.0.0." + std::to_string(host)));
  EXPECT_EQ(meeting.said(), "begin>1 begin>2 begin>3");
  EXPECT_EQ(meeting.sent.front().message.membership->leader, 1);
  return meeting;
}

TEST(Coordinator, EndsWhereMoreThanHalfOfTheMembersMayGoOnElsewhere) {
  ToldMeeting meeting = guarded();
  meeting.coordinator.left(1, "silence", meeting.now, meeting.now, true);
  EXPECT_EQ(meeting.said(), "lost>2 lost>3");
  meeting.say(3, Kind::kLeaderless);
  EXPECT_EQ(meeting.said(), "lost>2 ended>2");
  EXPECT_EQ(meeting.sent.back().message.text,
            "1 of 3 nodes is no majority, and a job that is cut off must not go on twice");
}

TEST(Coordinator, GoesOnWithoutThoseThatEndedOrLeft) {
  ToldMeeting meeting = guarded();
  meeting.lose(1, "its launcher ended");
  meeting.say(3, Kind::kDropOut);
  EXPECT_EQ(meeting.said(), "lost>2 lost>3 lost>2");
  meeting.say(2, Kind::kReport);
  meeting.ready(2, 1, 0);
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "over>2 begin>2");
}

TEST(Coordinator, KnowsALauncherByItsLatestConnection) {
  ToldMeeting meeting(2, 2);
  meeting.join(5, node_at("10.0.0.1"));
  meeting.join(3, node_at("10.0.0.1"));
  EXPECT_EQ(meeting.said(), "refused>3");
  meeting.join(6, node_at("10.0.0.2"));
  EXPECT_EQ(meeting.said(), "begin>5 begin>6");
}

/// 'settled': all may go on from this round.
TEST(Coordinator, SaysWhenAllKnowOfARound) {
  ToldMeeting meeting = guarded();
  EXPECT_TRUE(meeting.sent.front().message.settled) << "there was none before it";
  for (const LauncherId id : {1U, 2U, 3U}) meeting.say(id, Kind::kReport);
  for (const LauncherId id : {1U, 2U, 3U}) meeting.ready(id, 1, 0);
  EXPECT_EQ(meeting.said(), "over>1 over>2 over>3 begin>1 begin>2 begin>3");
  EXPECT_TRUE(meeting.sent.back().message.settled) << "its members are the same";
  meeting.lose(1, "its launcher ended");
  for (const LauncherId id : {2U, 3U}) meeting.say(id, Kind::kReport, 1);
  for (const LauncherId id : {2U, 3U}) meeting.ready(id, 2, 0);
  meeting.pass(Duration(1000));
  EXPECT_EQ(meeting.said(), "lost>2 lost>3 over>2 over>3 begin>2 begin>3");
  EXPECT_FALSE(meeting.sent.back().message.settled);
  for (int i = 0; i < 2; ++i) meeting.say(2, Kind::kBegun, 2);
  EXPECT_EQ(meeting.said(), "");
  meeting.say(3, Kind::kBegun, 2);
  EXPECT_EQ(meeting.said(), "settled>2 settled>3");
}

TEST(Coordinator, NeedsNoWordOfARoundOfAllThatAreLeft) {
  for (const bool all : {false, true}) {
    ToldMeeting meeting = with_ballot(4, true);
    for (const int rank : {1, 2}) vote(meeting, rank);
    if (all) vote(meeting, 3);
    meeting.pass(Duration(5000));
    EXPECT_EQ(meeting.said(), all ? "begin>2 begin>3 begin>4" : "begin>2 begin>3");
    EXPECT_EQ(meeting.sent.front().message.settled, all);
  }
}

}  // namespace
}  // namespace lrun::launcher
