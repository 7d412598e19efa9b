#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

using Warnings = std::vector<std::string>;

LaunchRequest request_for_four_nodes(const RendezvousRequest& rendezvous = {}) {
  LaunchRequest request = request_for("8");
  request.num_nodes = {4, Source::kFlag, "--num_nodes"};
  request.rendezvous = rendezvous;
  return request;
}

TEST(MeetingWarnings, WarnsOfAnAddressThatThisHostDoesNotHave) {
  AllocatedNode node = cpu_node();
  node.also_named = {"there", "198.51.100.7"};
  RendezvousRequest rendezvous{.endpoint = {{"there", 4000}, Source::kFlag, "--rdzv-endpoint"}};
  rendezvous.local_addr = flag("--local-addr", "1.2.3.4");
  EXPECT_EQ(plan_of(request_for_four_nodes(rendezvous), node).warnings,
            Warnings{"'--local-addr 1.2.3.4' is no address of 'host': other nodes reach it only where "
                     "something forwards them to here"});
  rendezvous.local_addr.value = "198.51.100.7";
  EXPECT_EQ(plan_of(request_for_four_nodes(rendezvous), node).warnings, Warnings());
}

TEST(MeetingWarnings, ShownWithoutAPlaceToMeetSaysThatTheRunWouldBeRefused) {
  LaunchRequest request = request_for_four_nodes();
  EXPECT_EQ(plan_of(request, cpu_node()).warnings, Warnings()) << "the run itself is refused";
  request.dry_run = DryRun::kText;
  EXPECT_EQ(plan_of(request, cpu_node()).warnings,
            Warnings{"nobody says where the launchers of 4 nodes meet: this run would be refused "
                     "without '--rdzv-endpoint HOST:29500'"});
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 4;
  EXPECT_EQ(make_plan(request, Environment(), script, {true, ""}, "demo").warnings, Warnings())
      << "lrun tells those that it starts";
  request.rendezvous.endpoint = {{"there", 4000}, Source::kFlag, "--rdzv-endpoint"};
  EXPECT_EQ(plan_of(request, cpu_node()).warnings, Warnings());
}

}  // namespace
}  // namespace lrun::launcher
