#include "rendezvous/membership.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

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
  EXPECT_EQ(membership.self(), (Member{0, "host", 0, 3}));
}

}  // namespace
}  // namespace lrun
