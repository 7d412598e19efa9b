#include "rendezvous/membership.h"

#include <gtest/gtest.h>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using test::node_at;
using test::seen_by;
using test::with_role;

TEST(SoleMembership, IsTheOneNodeOfThePlanWithTheStoresPort) {
  LaunchPlan plan;
  plan.world_size = 3;
  plan.master_addr = "127.0.0.1";
  plan.nodes = {{.name = "host", .workers = std::vector<WorkerPlan>(3)}};
  const Membership membership = sole_membership(plan, 4711);
  EXPECT_EQ(membership.world_size, 3);
  EXPECT_EQ(membership.master_addr, "127.0.0.1");
  EXPECT_EQ(membership.master_port, 4711);
  EXPECT_EQ(membership.attempt, 0);
  EXPECT_EQ(membership.self, (Member{.name = "host", .workers = 3, .role_world_size = 3}));
  EXPECT_EQ(membership.first_names, std::vector<std::string>{"host"});
}

std::optional<Membership> copy_of(const Membership& membership) {
  return membership_from_json(to_json(membership), to_json(membership.self));
}

TEST(MembershipJson, ComesBackAsItWas) {
  Membership membership =
      seen_by(1, assign_ranks({node_at("10.0.0.1", 3), with_role(node_at("10.0.0.2", 2), "a \"role\"")}));
  membership.round = 7;
  membership.history = "so \"far\"";
  EXPECT_EQ(copy_of(membership), membership);
}

TEST(MembershipJson, IsTakenFromEveryPlaceOfAJob) {
  std::vector<JoinRecord> nodes;
  for (int host = 1; host <= 12; ++host) {
    nodes.push_back(with_role(node_at("10.0.0." + std::to_string(host), 1 + host % 3), host % 2 == 0 ? "ps" : "tr"));
  }
  const RankAssignment assignment = assign_ranks(nodes);
  EXPECT_EQ(assignment.common.first_names.size(), Membership::kMostNamedNodes);
  EXPECT_EQ(assignment.common.first_names.back(), "node-10.0.0.9");
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) EXPECT_TRUE(copy_of(seen_by(rank, assignment))) << rank;
}

TEST(MembershipJson, RefusesWhatContradictsItself) {
  const RankAssignment assignment = assign_ranks({node_at("10.0.0.1", 3), node_at("10.0.0.2", 2), node_at("10.0.0.3")});
  const auto refused = [&](auto change) {
    Membership bad = seen_by(1, assignment);
    change(bad);
    return !copy_of(bad);
  };
  EXPECT_FALSE(refused([](Membership&) {}));
  EXPECT_TRUE(refused([](Membership& bad) { bad.num_nodes = 0; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.num_nodes = 65'537; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.first_names.pop_back(); }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.nodes_by_workers.clear(); }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.nodes_by_workers = {{2, 3}}; })) << "as many workers on other nodes";
  EXPECT_TRUE(refused([](Membership& bad) { bad.nodes_by_workers = {{3, 2}, {0, 1}}; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.earlier_by_workers = {{2, 1}}; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.earlier_by_workers.clear(); }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.node_rank = 3; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.node_rank = -1; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.node_rank = 0; })) << "the first node has the first rank";
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.node_rank = 2; })) << "there are workers behind the last";
  EXPECT_TRUE(refused([](Membership& bad) { bad.world_size = 5; })) << "no worker is left for the last node";
  EXPECT_TRUE(refused([](Membership& bad) { bad.world_size = 2147483647; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.base_rank = -1; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.base_rank = 2147483647; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.workers = 0; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.base_role_rank = 2147483647; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.role_world_size = 1; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.master_port = 0; }));
  EXPECT_FALSE(membership_from_json("{}", "{}"));
  EXPECT_FALSE(membership_from_json("[1", "{}"));
  EXPECT_FALSE(membership_from_json(to_json(assignment.common), "[]"));
}

}  // namespace
}  // namespace lrun::launcher
