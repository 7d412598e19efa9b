#include "plan/job_place.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/plan/planning.h"

namespace lrun {
namespace {

Allocation step_of_three(int node_rank) {
  return {{cpu_node(16, "here"), cpu_node(16, "n1"), cpu_node(16, "n3")},
          "Slurm step 12.0",
          "SLURM_STEP_ID, SLURM_STEP_NODELIST",
          JobPlace{"slurm-12.0", "n1", 15'012, node_rank}};
}

LaunchPlan plan_in(const Allocation& allocation, const LaunchRequest& request) {
  return make_plan(placed(request, allocation), Environment(), allocation, {true, ""}, "demo");
}

TEST(JobPlace, MakesARunOfSeveralNodesOutOfARequestThatNamesNone) {
  const LaunchPlan plan = plan_in(step_of_three(1), request_for("2"));
  EXPECT_EQ(plan.num_nodes, 3);
  EXPECT_EQ(plan.world_size, 6);
  EXPECT_EQ(plan.run_name, "slurm-12.0");
  ASSERT_TRUE(plan.rendezvous);
  EXPECT_EQ(plan.rendezvous->host, "n1");
  EXPECT_EQ(plan.rendezvous->port, 15'012);
  EXPECT_EQ(plan.rendezvous->node_rank, 1);
  EXPECT_EQ(plan.rendezvous->hosting, RendezvousPlan::Hosting::kNever);
  EXPECT_EQ(plan_in(step_of_three(0), request_for("2")).rendezvous->hosting, RendezvousPlan::Hosting::kMust);
}

TEST(JobPlace, IsShownWithTheNodesInRankOrder) {
  LaunchRequest request = request_for("2");
  EXPECT_EQ(plan_in(step_of_three(1), request).nodes.front().name, "here") << "what runs here comes first";
  request.dry_run = DryRun::kText;
  const LaunchPlan shown = plan_in(step_of_three(1), request);
  EXPECT_EQ(shown.nodes[0].name, "n1");
  EXPECT_EQ(shown.nodes[1].name, "here");
  EXPECT_EQ(shown.nodes[2].name, "n3");
}

TEST(JobPlace, LeavesWhatTheUserSaid) {
  LaunchRequest request = request_for("2");
  request.rdzv_id = "mine";
  request.master_port = {29'111, Source::kFlag, "--master-port"};
  request.num_nodes = {3, Source::kFlag, "--num_nodes"};
  const LaunchPlan plan = plan_in(step_of_three(1), request);
  EXPECT_EQ(plan.run_name, "mine");
  EXPECT_EQ(plan.rendezvous->port, 29'111);
}

TEST(JobPlace, RefusesAnotherNumberOfNodes) {
  for (const int nodes : {1, 2, 4}) {
    LaunchRequest request = request_for("2");
    request.num_nodes = {nodes, Source::kFlag, "--num_nodes"};
    try {
      (void)placed(request, step_of_three(0));
      ADD_FAILURE() << nodes << " nodes were accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()), "'--num_nodes " + std::to_string(nodes) + "': Slurm step 12.0 has 3 nodes");
    }
  }
  LaunchRequest elastic = request_for("2");
  elastic.num_nodes = {4, Source::kFlag, "--nnodes"};
  elastic.min_nodes = 2;
  EXPECT_EQ(placed(elastic, step_of_three(0)).num_nodes.value, 3) << "3 are 2 to 4";
}

TEST(JobPlace, IsNotAskedForWhereTheUserNamesNodesOrTorchrunWould) {
  EXPECT_TRUE(leaves_nodes_to_manager(request_for("2")));
  LaunchRequest alone = request_for("2");
  alone.standalone = true;
  EXPECT_FALSE(leaves_nodes_to_manager(alone));
  LaunchRequest torchrun = request_for("2");
  torchrun.compat = Compat::kTorchrun;
  EXPECT_FALSE(leaves_nodes_to_manager(torchrun));
  LaunchRequest by_hand = request_for("2");
  by_hand.rendezvous.endpoint = {{"n1", 29'500}, Source::kFlag, "--rdzv-endpoint"};
  EXPECT_FALSE(leaves_nodes_to_manager(by_hand));
}

TEST(JobPlace, OfABatchScriptIsAllItsNodesOrAsManyAsWereAskedFor) {
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 3;
  const auto nodes = [&](int asked, int least) {
    LaunchRequest request = request_for("2");
    if (asked > 0) request.num_nodes = {asked, Source::kFlag, "--num_nodes"};
    request.min_nodes = least;
    return nodes_to_start(placed(request, script), script);
  };
  EXPECT_EQ(nodes(0, 0), 3);
  EXPECT_EQ(nodes(3, 0), 3);
  EXPECT_EQ(nodes(2, 0), 2);
  EXPECT_EQ(nodes(1, 0), 0) << "this node alone";
  EXPECT_EQ(nodes(4, 2), 3) << "3 are 2 to 4";
  EXPECT_THROW((void)nodes(4, 0), UserError);
  EXPECT_EQ(nodes_to_start(placed(request_for("2"), step_of_three(0)), step_of_three(0)), 0) << "they have started";
}

}  // namespace
}  // namespace lrun
