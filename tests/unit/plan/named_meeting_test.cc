// A step of Slurm in which the user says where the launchers meet, and no more.
#include <gtest/gtest.h>

#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

TEST(NamedMeeting, KeepsTheNodesOfTheStep) {
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = endpoint_of("n1", 29'555);
  const LaunchPlan plan = plan_in(step_of_three(1), request);
  EXPECT_EQ(plan.world_size, 6);
  ASSERT_TRUE(plan.rendezvous);
  EXPECT_EQ(plan.rendezvous->host, "n1");
  EXPECT_EQ(plan.rendezvous->port, 29'555);
  EXPECT_EQ(plan.rendezvous->node_rank, 1);
  EXPECT_EQ(plan.rendezvous->max_nodes, 3);
  EXPECT_EQ(plan.rendezvous->replacement, Duration(0)) << "nobody else can come";
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 3;
  EXPECT_EQ(nodes_to_start(placed(request, script), script), 3) << "as without an endpoint";
}

TEST(NamedMeeting, IsOnTheFirstNode) {
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = endpoint_of("n3.cluster", 29'555);
  EXPECT_EQ(
      refusal_of([&] { (void)plan_in(step_of_three(0), request); }),
      "'--rdzv-endpoint' names 'n3.cluster', and the launchers meet on node rank 0, which is 'n1' | name 'n1', or "
      "leave '--rdzv-endpoint' out");
  request.rendezvous.endpoint = endpoint_of("10.0.0.1", 29'555);
  EXPECT_TRUE(plan_in(step_of_three(0), request).rendezvous) << "an address may be that of the first";
  request.rendezvous.endpoint = endpoint_of("n3", 29'555);
  request.rendezvous.backend = backend_flag("c10d");
  EXPECT_TRUE(plan_in(step_of_three(0), request).rendezvous) << "they meet wherever the endpoint is";
}

TEST(NamedMeeting, OfSeveralNodesIsNotOnTheLoopbackInterface) {
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = endpoint_of("localhost", 29'555);
  for (const char* const backend : {"", "c10d"}) {
    if (*backend != '\0') request.rendezvous.backend = backend_flag(backend);
    EXPECT_EQ(refusal_of([&] { (void)plan_in(step_of_three(0), request); }),
              "'--rdzv-endpoint' names 'localhost', which each of 3 nodes takes for itself | leave '--rdzv-endpoint' "
              "out, or write '--standalone' for a run on each node alone");
  }
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 3;
  EXPECT_EQ(nodes_to_start(placed(request, script), script), 0) << "a script's first node, where it runs";
}

TEST(NamedMeeting, IsChangedWithTheOptionThatNamedIt) {
  EXPECT_EQ(plan_in(step_of_three(0), request_for("2")).rendezvous->port_option, "--master-port");
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = endpoint_of("n1", 29'555);
  EXPECT_EQ(plan_in(step_of_three(0), request).rendezvous->port_option, "--rdzv-endpoint");
}

}  // namespace
}  // namespace lrun::launcher
