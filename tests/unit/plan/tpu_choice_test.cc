#include "plan/tpu_choice.h"

#include <gtest/gtest.h>

#include "plan/show_plan.h"
#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

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
  EXPECT_THAT(refused(under_tpu("1"), cpu_node()), mentions({"'host'", "'--accelerator cpu'"}));
  for (const auto& [devices, chips] : {std::pair("3", "3 TPU chips"), {"1,2", "2 TPU chips"}, {"1,0", "2 TPU chips"}}) {
    EXPECT_THAT(refused(under_tpu(devices), tpu_node(8)),
                mentions({chips, "'host'", "mesh", "1, 2, 4 or 8", "'--devices 4'", "'--devices 4,5'"}));
  }
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
}

TEST(TpuChoice, IsShownAlsoWhereThereIsNoTpu) {
  LaunchRequest request = under_tpu("8");
  request.num_nodes = {4, Source::kFlag, "--num_nodes"};
  request.dry_run = DryRun::kText;
  const LaunchPlan plan = plan_of(request, cpu_node());
  const std::string text = show_plan(plan, Environment(), DryRun::kText);
  EXPECT_NE(text.find("TPU chips 0-7, on every node"), std::string::npos) << text;
  ASSERT_FALSE(plan.warnings.empty());
  EXPECT_THAT(plan.warnings.back(), mentions({"this host has no TPU"}));
  EXPECT_NE(show_plan(plan, Environment(), DryRun::kJson).find(R"("kind": "tpu")"), std::string::npos);
}

}  // namespace
}  // namespace lrun::launcher
