#include "rendezvous/memory_neighbours.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace lrun::launcher {
namespace {

/// Nodes by rank, of which each has a host, a token and a port of its own: host 'a' is 10.0.0.1.
class MemoryNeighbours : public ::testing::Test {
 protected:
  /// \param hosts  one letter for each node
  void nodes_on(const std::string& hosts) {
    for (const char host : hosts) {
      const int rank = static_cast<int>(nodes_.size());
      nodes_.push_back({.token = "node " + std::to_string(rank), .copy_port = 7000 + rank});
      members_.push_back({.node_rank = rank, .address = "10.0.0." + std::to_string(host - 'a' + 1)});
    }
  }
  /// The neighbours' ranks; -1: none.
  std::vector<int> neighbours() {
    assign_neighbours(nodes_, members_);
    std::vector<int> ranks;
    for (const Member& member : members_) {
      const bool has_one = member.neighbour_port != 0;
      ranks.push_back(has_one ? member.neighbour_port - 7000 : -1);
      const std::string address = has_one ? members_.at(static_cast<std::size_t>(ranks.back())).address : "";
      EXPECT_EQ(member.neighbour, address) << "node " << member.node_rank;
    }
    return ranks;
  }
  /// 'lost 1 from 2': what each node gets.
  std::vector<std::string> inherited() {
    assign_neighbours(nodes_, members_);
    std::vector<std::string> texts;
    for (const Member& member : members_) {
      std::string text;
      for (const LostFiles& lost : member.inherits) {
        const int from = lost.port - 7000;
        EXPECT_EQ(lost.address, members_.at(static_cast<std::size_t>(from)).address);
        text += (text.empty() ? "" : ", ") + lost.owner.token + " from " + std::to_string(from);
      }
      texts.push_back(text);
    }
    return texts;
  }
  /// A node has copies of a node that is not there any more.
  void keeps_of_lost(std::size_t node, int lost_rank) {
    nodes_.at(node).keeps.push_back({"lost " + std::to_string(lost_rank), lost_rank});
  }

  std::vector<NodeWithFiles> nodes_;
  std::vector<Member> members_;
};

using Ranks = std::vector<int>;
using Texts = std::vector<std::string>;

TEST_F(MemoryNeighbours, IsTheNextNodeAndTheFirstBehindTheLast) {
  nodes_on("abc");
  EXPECT_EQ(neighbours(), (Ranks{1, 2, 0}));
}

TEST_F(MemoryNeighbours, HasAnotherAddress) {
  nodes_on("aabbb");
  EXPECT_EQ(neighbours(), (Ranks{2, 3, 0, 1, 0}));
}

TEST_F(MemoryNeighbours, IsFoundAlsoWhereHostsAlternate) {
  nodes_on("abaab");
  EXPECT_EQ(neighbours(), (Ranks{1, 0, 4, 1, 2}));
}

TEST_F(MemoryNeighbours, DoesNotExistWhereAllHaveOneAddress) {
  nodes_on("aaa");
  EXPECT_EQ(neighbours(), (Ranks{-1, -1, -1}));
}

TEST_F(MemoryNeighbours, KnowEachOther) {
  nodes_on("aab");
  nodes_[2].copy_key = "the key";
  nodes_[1].token = "the token";
  assign_neighbours(nodes_, members_);
  EXPECT_EQ(members_[0].neighbour_key, "the key");
  ASSERT_EQ(members_[2].keeps_for.size(), 2U);
  EXPECT_EQ(members_[2].keeps_for[1], (FileOwner{"the token", 1}));
  EXPECT_EQ(members_[0].keeps_for.size(), 1U);
  EXPECT_TRUE(members_[1].keeps_for.empty());
}

TEST_F(MemoryNeighbours, DoesNotExistForOneNode) {
  nodes_on("a");
  EXPECT_EQ(neighbours(), Ranks{-1});
}

TEST_F(MemoryNeighbours, AreNodesThatCanKeepCopies) {
  nodes_on("abcd");
  nodes_[1].copy_port = 0;
  EXPECT_EQ(neighbours(), (Ranks{2, -1, 3, 0}));
}

TEST_F(MemoryNeighbours, GetNothingWhereNoNodeIsLost) {
  nodes_on("abc");
  nodes_[1].keeps = {{"node 0", 0}};
  nodes_[0].keeps = {{"node 2", 2}};
  nodes_[2].is_new = true;
  EXPECT_EQ(inherited(), (Texts{"", "", ""}));
}

TEST_F(MemoryNeighbours, GiveFilesToTheNewcomerWithTheRank) {
  nodes_on("abc");
  keeps_of_lost(2, 1);
  nodes_[1].is_new = true;
  EXPECT_EQ(inherited(), (Texts{"", "lost 1 from 2", ""}));
}

TEST_F(MemoryNeighbours, GiveFilesToAnotherNewcomerAndToTheNodeWithTheRank) {
  nodes_on("abcd");
  keeps_of_lost(1, 0);
  nodes_[2].is_new = true;
  nodes_[3].is_new = true;
  EXPECT_EQ(inherited(), (Texts{"lost 0 from 1", "", "lost 0 from 1", ""}));
}

TEST_F(MemoryNeighbours, GiveFilesToTheNodeWithTheRankWhereNobodyCame) {
  nodes_on("ab");
  keeps_of_lost(1, 0);
  EXPECT_EQ(inherited(), (Texts{"lost 0 from 1", ""}));
}

TEST_F(MemoryNeighbours, GiveFilesOfTheLastRankToANewcomerOfASmallerJob) {
  nodes_on("ab");
  keeps_of_lost(0, 7);
  EXPECT_EQ(inherited(), (Texts{"", ""}));
  nodes_[1].is_new = true;
  EXPECT_EQ(inherited(), (Texts{"", "lost 7 from 0"}));
}

TEST_F(MemoryNeighbours, GiveTheFilesOfTwoLostNodesToTheirNewcomers) {
  nodes_on("abcd");
  keeps_of_lost(0, 3);
  keeps_of_lost(2, 1);
  nodes_[1].is_new = nodes_[3].is_new = true;
  EXPECT_EQ(inherited(), (Texts{"", "lost 1 from 2", "", "lost 3 from 0"}));
}

TEST_F(MemoryNeighbours, SpreadTheFilesOfTwoLostNodesInTheOrderOfTheirRanks) {
  nodes_on("abcd");
  keeps_of_lost(0, 9);
  keeps_of_lost(0, 8);
  nodes_[1].is_new = nodes_[3].is_new = true;
  EXPECT_EQ(inherited(), (Texts{"", "lost 8 from 0", "", "lost 9 from 0"}));
}

TEST_F(MemoryNeighbours, LeaveANewcomerThatReplacesOneToIt) {
  nodes_on("abc");
  keeps_of_lost(0, 1);
  keeps_of_lost(0, 5);
  nodes_[1].is_new = nodes_[2].is_new = true;
  EXPECT_EQ(inherited(), (Texts{"", "lost 1 from 0", "lost 5 from 0"}));
}

TEST_F(MemoryNeighbours, UseTheFirstOfTwoCopies) {
  nodes_on("abc");
  keeps_of_lost(1, 0);
  keeps_of_lost(2, 0);
  nodes_[0].is_new = true;
  EXPECT_EQ(inherited(), (Texts{"lost 0 from 1", "", ""}));
}

TEST_F(MemoryNeighbours, UseNoCopiesOfANodeThatNobodyReaches) {
  nodes_on("abc");
  keeps_of_lost(1, 0);
  keeps_of_lost(2, 0);
  nodes_[0].is_new = true;
  nodes_[1].copy_port = 0;
  EXPECT_EQ(inherited(), (Texts{"lost 0 from 2", "", ""}));
}

TEST_F(MemoryNeighbours, GiveNothingToANodeThatCopiesNothing) {
  nodes_on("abc");
  keeps_of_lost(2, 1);
  nodes_[1].is_new = true;
  nodes_[1].copy_port = 0;
  EXPECT_EQ(inherited(), (Texts{"", "", ""}));
}

TEST_F(MemoryNeighbours, GiveNoNodeMoreThanItMayInherit) {
  nodes_on("ab");
  for (std::size_t i = 0; i < Member::kMostInherited + 3; ++i) {
    nodes_[1].keeps.push_back({"lost " + std::to_string(i), 0});
  }
  assign_neighbours(nodes_, members_);
  EXPECT_EQ(members_[0].inherits.size(), Member::kMostInherited);
  EXPECT_EQ(members_[1].inherits.size(), 0U);
}

}  // namespace
}  // namespace lrun::launcher
