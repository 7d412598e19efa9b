#include "plan/tpu_environment.h"

#include <gtest/gtest.h>

#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

using Variables = std::map<std::string, std::string>;

/// Those for torch_xla and libtpu.
Variables worker(const LaunchPlan& plan, std::size_t node, std::size_t local_rank,
                 const Environment& base = Environment()) {
  const NodePlan& planned = plan.nodes.at(node);
  Variables seen = variables_of(WorkerEnvironment(plan, planned, base, {}), planned.workers.at(local_rank));
  std::erase_if(seen, [](const auto& variable) {
    const std::string& name = variable.first;
    return !name.starts_with("PJRT_") && !name.starts_with("TPU_") && !name.starts_with("CLOUD_TPU_");
  });
  return seen;
}

// The variables that torch_xla's own configure_topology() sets for the workers of one host, by the cases of its tests
// (pytorch/xla, test/pjrt/test_runtime_tpu.py, 'v4-8' and 'v5-4'): it leaves set variables alone, so ours have to be
// equal.
TEST(TpuEnvironment, IsThatOfTorchXlaOnOneHost) {
  const LaunchPlan plan = plan_of(under_tpu("4"), tpu_node(4));
  for (const std::size_t rank : {0U, 1U, 2U, 3U}) {
    const std::string number = std::to_string(rank);
    EXPECT_EQ(worker(plan, 0, rank),
              (Variables{{"CLOUD_TPU_TASK_ID", number},
                         {"PJRT_DEVICE", "TPU"},
                         {"PJRT_LOCAL_PROCESS_COUNT", "4"},
                         {"PJRT_LOCAL_PROCESS_RANK", number},
                         {"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"},
                         {"TPU_PROCESS_ADDRESSES", "localhost:8476,localhost:8477,localhost:8478,localhost:8479"},
                         {"TPU_PROCESS_BOUNDS", "2,2,1"},
                         {"TPU_PROCESS_PORT", std::to_string(8476 + rank)},
                         {"TPU_VISIBLE_CHIPS", number}}));
  }
  EXPECT_EQ(worker(plan_of(under_tpu("8"), tpu_node(8)), 0, 0)["TPU_PROCESS_BOUNDS"], "2,4,1");
  EXPECT_EQ(worker(plan_of(under_tpu("1"), tpu_node(4)), 0, 0)["TPU_PROCESS_BOUNDS"], "1,1,1");
}

TEST(TpuEnvironment, LetsTwoRunsShareAHost) {
  Variables second = worker(plan_of(under_tpu("4,5,6,7"), tpu_node(8)), 0, 1);
  EXPECT_EQ(second["TPU_VISIBLE_CHIPS"], "5");
  EXPECT_EQ(second["TPU_PROCESS_ADDRESSES"], "localhost:8480,localhost:8481,localhost:8482,localhost:8483");
  EXPECT_EQ(second["TPU_PROCESS_PORT"], "8481");
  EXPECT_EQ(second["CLOUD_TPU_TASK_ID"], "1");
}

TEST(TpuEnvironment, LeavesTheMeshOfAPodToTheTpu) {
  LaunchRequest request = under_tpu("8");
  request.num_nodes = {4, Source::kFlag, "--num_nodes"};
  const Environment base = environment_with({{"TPU_PROCESS_BOUNDS", "4,8,1"}, {"TPU_WORKER_ID", "0"}});
  const LaunchPlan plan = plan_of(request, tpu_node(8), base);
  EXPECT_EQ(plan.world_size, 32);
  EXPECT_EQ(worker(plan, 3, 7, base), (Variables{{"PJRT_DEVICE", "TPU"},
                                                 {"PJRT_LOCAL_PROCESS_COUNT", "8"},
                                                 {"PJRT_LOCAL_PROCESS_RANK", "7"},
                                                 {"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"},
                                                 {"TPU_PROCESS_BOUNDS", "4,8,1"},
                                                 {"TPU_VISIBLE_CHIPS", "7"},
                                                 {"TPU_WORKER_ID", "0"}}));
  request.devices = devices_flag("4");
  EXPECT_THAT(refusal_of([&] { plan_of(request, tpu_node(8)); }), mentions({"8 TPU", "'host'", "4", "'--devices -1'"}));
}

TEST(TpuEnvironment, OfATrialIsThatOfCpus) {
  LaunchRequest request = under_tpu("2");
  request.accelerator = accelerator_flag(DeviceKind::kCpu);
  const LaunchPlan plan = plan_of(request, cpu_node());
  EXPECT_EQ(worker(plan, 0, 1),
            (Variables{{"PJRT_DEVICE", "CPU"}, {"PJRT_LOCAL_PROCESS_COUNT", "2"}, {"PJRT_LOCAL_PROCESS_RANK", "1"}}));
}

TEST(TpuEnvironment, IsForTheStrategyAlone) {
  const Environment base = environment_with({{"PJRT_DEVICE", "TPU"}, {"TPU_PROCESS_BOUNDS", "1,1,1"}});
  EXPECT_EQ(worker(plan_of(request_for("2"), cpu_node(), base), 0, 0, base),
            (Variables{{"PJRT_DEVICE", "TPU"}, {"TPU_PROCESS_BOUNDS", "1,1,1"}}))
      << "what the user has set reaches other programs";
}

TEST(TpuEnvironment, NamesTheOneDeviceThatAProcessSees) {
  const LaunchPlan plan = plan_of(under_tpu("4"), tpu_node(4));
  Variables seen = variables_of(WorkerEnvironment(plan, plan.nodes[0], Environment(), {}), plan.nodes[0].workers[3]);
  EXPECT_EQ(seen["LRUN_DEVICES"], "xla:0");
  EXPECT_EQ(seen["LRUN_ACCELERATOR"], "tpu");
  EXPECT_EQ(seen["LRUN_STRATEGY"], "tpu");
}

}  // namespace
}  // namespace lrun::launcher
