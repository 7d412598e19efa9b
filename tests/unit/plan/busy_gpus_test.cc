#include "plan/busy_gpus.h"

#include <gtest/gtest.h>

#include "plan/device_choice.h"
#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

/// Four GPUs; python3 computes on those in `busy`.
AllocatedNode node_with_busy(std::initializer_list<std::size_t> busy) {
  AllocatedNode node = gpu_node(4);
  for (const std::size_t place : busy) node.gpus.gpus[place].processes = {{4242, 30000, "python3"}};
  return node;
}

std::string refusal_for(const LaunchRequest& request, const AllocatedNode& node) {
  return refusal_of([&] { choose_devices(request, node); });
}

TEST(BusyGpus, AreRefusedWithWhoHasThemAndWhichAreFree) {
  EXPECT_EQ(refusal_for(request_for("2"), node_with_busy({1})),
            "GPU '1' of 'host' is busy: process 4242 (python3) uses 30000 MiB of it | use '--devices 0,2', or "
            "'--share-gpus' to use busy ones too");
  EXPECT_EQ(refusal_for(request_for("0,"), node_with_busy({0, 1, 2})),
            "GPU '0' of 'host' is busy: process 4242 (python3) uses 30000 MiB of it | use '--devices 3,', or "
            "'--share-gpus' to use busy ones too");
  EXPECT_EQ(refusal_for(request_for("3,1"), node_with_busy({0, 1, 2})),
            "GPU '1' of 'host' is busy: process 4242 (python3) uses 30000 MiB of it | free: '--devices 3,', or "
            "'--share-gpus' to use busy ones too");
  EXPECT_NE(refusal_for(request_for("-1"), node_with_busy({0, 1, 2, 3})).find("no GPU is free"), std::string::npos);
}

TEST(BusyGpus, AreNoMatterWhenOthersAreUsed) {
  EXPECT_EQ(refusal_for(request_for("2"), node_with_busy({2, 3})), "");
  EXPECT_EQ(refusal_for(request_for("0,3"), node_with_busy({1, 2})), "");
}

TEST(BusyGpus, AreOnlyAWarningWhereNoGpuWasAskedFor) {
  const std::vector<std::string> warning{"GPU '0' of 'host' is busy: process 4242 (python3) uses 30000 MiB of it"};
  EXPECT_EQ(choose_devices(request_for(""), node_with_busy({0})).warnings, warning);
  EXPECT_EQ(choose_devices(request_for_processes("2"), node_with_busy({0})).warnings, warning);
  EXPECT_NE(refusal_for(request_for_processes("gpu"), node_with_busy({0})), "");
  LaunchRequest gpu = request_for("");
  gpu.accelerator = accelerator_flag(DeviceKind::kGpu);
  EXPECT_NE(refusal_for(gpu, node_with_busy({0})), "");
}

TEST(BusyGpus, AreTakenWithoutAWordWhenSharingWasAskedFor) {
  LaunchRequest request = request_for("2");
  request.share_gpus = true;
  EXPECT_EQ(choose_devices(request, node_with_busy({0, 1})).warnings, std::vector<std::string>());
}

TEST(BusyGpus, InExclusiveModeCannotBeShared) {
  LaunchRequest request = request_for("1");
  request.share_gpus = true;
  AllocatedNode node = node_with_busy({0});
  node.gpus.gpus[0].mode = ComputeMode::kExclusive;
  EXPECT_THAT(refusal_for(request, node), mentions({"'0'", "'host'", "4242", "'--devices 1,'"}));
}

TEST(BusyGpus, AreNoMatterToTorchrunsPersonality) {
  LaunchRequest request = request_for_processes("gpu");
  request.compat = Compat::kTorchrun;
  EXPECT_EQ(choose_devices(request, node_with_busy({1})).warnings.size(), 1U);
}

TEST(BusyGpus, NameTheFirstProcessAndCountTheOthers) {
  Gpu gpu;
  EXPECT_EQ(why_busy(gpu), "");
  gpu.processes = {{7, -1, ""}, {8, 1, "a"}, {9, 1, "b"}};
  EXPECT_EQ(why_busy(gpu), "process 7 computes on it, and 2 others");
}

}  // namespace
}  // namespace lrun::launcher
