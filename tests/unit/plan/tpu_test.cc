// Strategy 'tpu': the chips of a plan, and the variables by which torch_xla finds them.
#include <gtest/gtest.h>

#include "plan/show_plan.h"
#include "plan/tpu_choice.h"
#include "planning.h"

namespace lrun::launcher {
namespace {

using Variables = std::map<std::string, std::string>;

AllocatedNode tpu_node(int chips, int cores_per_chip = 1) {
  AllocatedNode node = cpu_node();
  node.tpus = {.asked = true, .chips = chips, .cores_per_chip = cores_per_chip};
  return node;
}

LaunchRequest under_tpu(const std::string& devices) {
  LaunchRequest request = request_for(devices);
  request.strategy = strategy_flag("tpu");
  return request;
}

std::string chips_of(const LaunchRequest& request, const AllocatedNode& node) {
  const LaunchPlan plan = plan_of(request, node);
  std::string text;
  for (const DeviceId& device : plan.nodes.front().devices) {
    EXPECT_EQ(device.kind, DeviceKind::kTpu);
    text += (text.empty() ? "" : ",") + device.id;
  }
  return text;
}

std::string refused(const LaunchRequest& request, const AllocatedNode& node,
                    const Environment& environment = Environment()) {
  return refusal_of([&] { plan_of(request, node, environment); });
}

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

TEST(TpuChoice, IsAChipAWorker) {
  EXPECT_EQ(chips_of(under_tpu("8"), tpu_node(8)), "0,1,2,3,4,5,6,7");
  EXPECT_EQ(chips_of(under_tpu("4"), tpu_node(8)), "0,1,2,3");
  EXPECT_EQ(chips_of(under_tpu("-1"), tpu_node(4)), "0,1,2,3");
  EXPECT_EQ(chips_of(under_tpu("auto"), tpu_node(4)), "0,1,2,3");
  EXPECT_EQ(chips_of(under_tpu(""), tpu_node(4)), "0");
  EXPECT_EQ(chips_of(under_tpu("4,5"), tpu_node(8)), "4,5");
  EXPECT_EQ(chips_of(under_tpu("3,"), tpu_node(8)), "3");
  const LaunchPlan plan = plan_of(under_tpu("8"), tpu_node(8));
  EXPECT_EQ(plan.world_size, 8);
  EXPECT_EQ(text_of(plan.accelerator.value), "tpu");
  EXPECT_EQ(text_of(plan.process_group_backend.value), "xla");
}

TEST(TpuChoice, FollowsFromTheAcceleratorAlone) {
  LaunchRequest request = request_for("4");
  request.accelerator = accelerator_flag(DeviceKind::kTpu);
  EXPECT_EQ(plan_of(request, tpu_node(4)).strategy,
            (Setting<Strategy>{Strategy::kTpu, Source::kFlag, "--accelerator"}));
  request.strategy = strategy_flag("ddp");
  EXPECT_EQ(refused(request, tpu_node(4)),
            "strategy 'ddp' does not run on TPUs, which '--accelerator tpu' asks for | use '--strategy tpu'");
}

TEST(TpuChoice, RefusesWhatIsNotThereOrNoMesh) {
  EXPECT_EQ(refused(under_tpu("8"), tpu_node(4)),
            "'--devices 8' asks for 8 TPU chips, but 'host' has 4 | use '--devices 4'");
  EXPECT_EQ(refused(under_tpu("8"), tpu_node(4, 2)),
            "'--devices 8' asks for 8 TPU chips, but 'host' has 4 (8 cores: a worker drives those of its chip) | "
            "use '--devices 4'");
  EXPECT_EQ(refused(under_tpu("1"), cpu_node()),
            "'host' has no TPU: its PCI bus has no chip of one | '--accelerator cpu' takes torch_xla's CPU device, for "
            "a trial");
  const std::string mesh =
      " of 'host' are no mesh | use 1, 2, 4 or 8 chips that follow each other, such as '--devices 4' or '--devices "
      "4,5'";
  EXPECT_EQ(refused(under_tpu("3"), tpu_node(8)), "these 3 TPU chips" + mesh);
  EXPECT_EQ(refused(under_tpu("1,2"), tpu_node(8)), "these 2 TPU chips" + mesh) << "they are not beside each other";
  EXPECT_EQ(refused(under_tpu("1,0"), tpu_node(8)), "these 2 TPU chips" + mesh);
  LaunchRequest processes = under_tpu("");
  processes.nproc_per_node = workers_flag("cpu");
  EXPECT_EQ(refused(processes, tpu_node(8)),
            "'--nproc-per-node cpu' counts CPUs, and the workers are on TPUs | use '--devices -1' for all chips");
  LaunchRequest on_gpus = under_tpu("1");
  on_gpus.accelerator = accelerator_flag(DeviceKind::kGpu);
  EXPECT_EQ(refused(on_gpus, tpu_node(8)),
            "strategy 'tpu' does not run on GPUs, which '--accelerator gpu' asks for | '--accelerator cpu' takes "
            "torch_xla's CPU device, for a trial");
  LaunchRequest nccl = under_tpu("1");
  nccl.process_group_backend = {GroupBackend::kNccl, Source::kFlag, "--process_group_backend"};
  EXPECT_EQ(refused(nccl, tpu_node(8)),
            "process group backend 'nccl' does not work on TPUs | leave it out: it is 'xla'");
}

TEST(TpuChoice, TriesTheProgramOnCpus) {
  LaunchRequest request = under_tpu("2");
  const Environment trial = environment_with({{"PJRT_DEVICE", "CPU"}});
  EXPECT_EQ(plan_of(request, cpu_node(), trial).accelerator.origin, "PJRT_DEVICE");
  EXPECT_EQ(refused(request, tpu_node(4), environment_with({{"PJRT_DEVICE", "CUDA"}})),
            "'PJRT_DEVICE=CUDA' and strategy 'tpu' contradict each other | unset it");
  request.accelerator = accelerator_flag(DeviceKind::kCpu);
  const LaunchPlan plan = plan_of(request, cpu_node());
  EXPECT_EQ(worker(plan, 0, 1),
            (Variables{{"PJRT_DEVICE", "CPU"}, {"PJRT_LOCAL_PROCESS_COUNT", "2"}, {"PJRT_LOCAL_PROCESS_RANK", "1"}}));
}

TEST(TpuChoice, AsksForTheChipsAndNotForGpus) {
  const Questions questions = questions_of(under_tpu("8"), Environment());
  EXPECT_TRUE(questions.tpus);
  EXPECT_FALSE(questions.gpus);
  EXPECT_FALSE(questions_of(request_for("8"), Environment()).tpus) << "nobody else waits for it";
}

// What torch_xla's own configure_topology() sets for the workers of one host, by the cases of its tests (pytorch/xla,
// test/pjrt/test_runtime_tpu.py, 'v4-8' and 'v5-4'): it leaves alone what is set already, so ours have to be the same.
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
  EXPECT_EQ(refused(request, tpu_node(8)),
            "a TPU pod works as a whole, and of the 8 TPU chips of 'host' only 4 would be used | use '--devices -1'");
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

TEST(TpuPlan, IsShownAlsoWhereThereIsNoTpu) {
  LaunchRequest request = under_tpu("8");
  request.num_nodes = {4, Source::kFlag, "--num_nodes"};
  request.dry_run = DryRun::kText;
  const LaunchPlan plan = plan_of(request, cpu_node());
  const std::string text = show_plan(plan, Environment(), DryRun::kText);
  EXPECT_NE(text.find("TPU chips 0,1,2,3,4,5,6,7, on every node"), std::string::npos) << text;
  EXPECT_NE(text.find("warning: this host has no TPU: here this run would be refused"), std::string::npos) << text;
  EXPECT_NE(show_plan(plan, Environment(), DryRun::kJson).find(R"("kind": "tpu")"), std::string::npos);
}

}  // namespace
}  // namespace lrun::launcher
