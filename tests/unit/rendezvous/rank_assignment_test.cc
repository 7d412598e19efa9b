#include "rendezvous/rank_assignment.h"

#include <gtest/gtest.h>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using test::node_at;
using test::run_id_of;
using test::seen_by;
using test::with_role;

std::vector<std::string> order_of(const std::vector<JoinRecord>& nodes) {
  std::vector<std::string> addresses;
  for (const std::size_t index : order_nodes(nodes)) addresses.push_back(nodes[index].address);
  return addresses;
}

using Addresses = std::vector<std::string>;

TEST(OrderNodes, ComparesAddressesAsNumbers) {
  EXPECT_EQ(order_of({node_at("10.0.0.10"), node_at("10.0.0.9"), node_at("fd00::1"), node_at("9.0.0.200")}),
            (Addresses{"9.0.0.200", "10.0.0.9", "10.0.0.10", "fd00::1"}));
}

TEST(OrderNodes, GivesTheNodeRankThatWasAskedFor) {
  EXPECT_EQ(order_of({node_at("10.0.0.1", 1, 1), node_at("10.0.0.2", 1, 0)}), (Addresses{"10.0.0.2", "10.0.0.1"}));
  EXPECT_EQ(order_of({node_at("10.0.0.1"), node_at("10.0.0.2"), node_at("10.0.0.3", 1, 1)}),
            (Addresses{"10.0.0.1", "10.0.0.3", "10.0.0.2"}))
      << "the others are around it";
}

TEST(OrderNodes, KeepsTheOrderOfNodeRanksWhenSomeAreNotThere) {
  EXPECT_EQ(order_of({node_at("10.0.0.1", 1, 5), node_at("10.0.0.2", 1, 2)}), (Addresses{"10.0.0.2", "10.0.0.1"}));
}

TEST(AssignRanks, GivesConsecutiveRanksToUnequalNodes) {
  const RankAssignment membership =
      assign_ranks({node_at("10.0.0.3", 3), node_at("10.0.0.1", 1), node_at("10.0.0.2", 2)});
  EXPECT_EQ(membership.common.world_size, 6);
  ASSERT_EQ(membership.members.size(), 3U);
  EXPECT_EQ(membership.members[0].base_rank, 0);
  EXPECT_EQ(membership.members[1].base_rank, 1);
  EXPECT_EQ(membership.members[2].base_rank, 3);
  EXPECT_EQ(membership.members[2].name, "node-10.0.0.3");
  EXPECT_EQ(membership.common.master_addr, "10.0.0.1");
  EXPECT_EQ(membership.common.master_port, 4001);
}

/// The table of torchrun's manual.
TEST(AssignRanks, CountsWorkersOfOneRoleOverNodes) {
  const RankAssignment membership =
      assign_ranks({with_role(node_at("10.0.0.1", 4), "ps"), with_role(node_at("10.0.0.2", 1), "tr"),
                    with_role(node_at("10.0.0.3", 2), "tr"), with_role(node_at("10.0.0.4", 3), "tr"),
                    with_role(node_at("10.0.0.5", 5), "ps")});
  const std::vector<int> base_ranks{0, 4, 5, 7, 10};
  const std::vector<int> base_role_ranks{0, 0, 1, 3, 4};
  const std::vector<int> role_sizes{9, 6, 6, 6, 9};
  ASSERT_EQ(membership.members.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(membership.members[i].base_rank, base_ranks[i]) << "agent " << i;
    EXPECT_EQ(membership.members[i].base_role_rank, base_role_ranks[i]) << "agent " << i;
    EXPECT_EQ(membership.members[i].role_world_size, role_sizes[i]) << "agent " << i;
  }
  EXPECT_EQ(membership.common.world_size, 15);
}

TEST(AssignRanks, ReplacesTheLoopbackAddressOfTheLeadersNode) {
  JoinRecord leader = node_at("127.0.0.1");
  leader.leader_address = "127.0.0.1";
  EXPECT_EQ(assign_ranks({node_at("10.0.0.7"), leader}).common.master_addr, "10.0.0.1") << "where the other one met it";
  EXPECT_EQ(assign_ranks({node_at("10.0.0.0"), leader}).members[1].address, "10.0.0.1") << "its place is by that, too";
  EXPECT_EQ(assign_ranks({leader, leader}).common.master_addr, "127.0.0.1") << "all on one machine";
}

TEST(AssignRanks, CountsNodesByTheirNumberOfWorkersAndTellsNamesApart) {
  std::vector<JoinRecord> nodes{node_at("10.0.0.1", 3), node_at("10.0.0.2", 2), node_at("10.0.0.3", 3)};
  nodes[2].node = nodes[0].node;
  const RankAssignment assignment = assign_ranks(nodes);
  using Counts = std::map<int, int>;
  EXPECT_EQ(assignment.common.nodes_by_workers, (Counts{{2, 1}, {3, 2}}));
  EXPECT_EQ(assignment.members[0].earlier_by_workers, Counts());
  EXPECT_EQ(assignment.members[2].earlier_by_workers, (Counts{{2, 1}, {3, 1}}));
  EXPECT_TRUE(assignment.members[0].shares_name);
  EXPECT_FALSE(assignment.members[1].shares_name);
  EXPECT_TRUE(assignment.members[2].shares_name);
}

TEST(Place, NumbersTheWorkersOfOurNode) {
  LaunchPlan plan;
  plan.role = "tr";
  plan.nodes.resize(2);
  plan.nodes[0].workers = {{.rank = 0, .local_rank = 0}, {.rank = 1, .local_rank = 1}};
  const Membership membership =
      seen_by(1, assign_ranks({with_role(node_at("10.0.0.1", 3), "ps"), with_role(node_at("10.0.0.2", 2), "tr")}));
  const LaunchPlan placed = place(plan, membership);
  ASSERT_EQ(placed.nodes.size(), 1U);
  EXPECT_EQ(placed.nodes[0].node_rank, 1);
  EXPECT_EQ(placed.nodes[0].workers[1].rank, 4);
  EXPECT_EQ(placed.nodes[0].workers[1].node_rank, 1);
  EXPECT_EQ(placed.world_size, 5);
  EXPECT_EQ(placed.num_nodes, 2);
  EXPECT_EQ(placed.other_roles_before, 3);
  EXPECT_EQ(placed.role_world_size, 2);
  EXPECT_EQ(placed.master_addr, "10.0.0.1");
  EXPECT_EQ(placed.run_id, run_id_of("10.0.0.1")) << "node 0's";
  EXPECT_EQ(placed.run_name, placed.run_id) << "nobody has named the run";
}

TEST(RankAssignment, TheJobKeepsTheIdOfItsFirstRound) {
  const std::string id = "20260101-000000-abcdef";
  const RankAssignment later = assign_ranks({node_at("10.0.0.1"), node_at("10.0.0.2")}, id);
  EXPECT_EQ(later.common.run_id, id);
  EXPECT_EQ(later.common.run_name, id);
}

TEST(RankAssignment, ANameIsNoId) {
  std::vector<JoinRecord> nodes{node_at("10.0.0.1"), node_at("10.0.0.2")};
  for (JoinRecord& node : nodes) node.run_name = "20260101-000000-abcdef";  // as a worker of another run may name it
  EXPECT_EQ(assign_ranks(nodes).common.run_id, run_id_of("10.0.0.1"));
  EXPECT_EQ(assign_ranks(nodes).common.run_name, "20260101-000000-abcdef");
}

}  // namespace
}  // namespace lrun::launcher
