#include "plan/device_choice.h"

#include <gtest/gtest.h>

#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

std::string chosen(const LaunchRequest& request, const AllocatedNode& node) {
  return ids_of(choose_devices(request, node).devices);
}

LaunchRequest with_accelerator(LaunchRequest request, DeviceKind accelerator) {
  request.accelerator = accelerator_flag(accelerator);
  return request;
}

TEST(ChooseDevices, OnGpusFollowsTheTableOfDevices) {
  const AllocatedNode node = gpu_node(4);
  EXPECT_EQ(chosen(request_for(""), node), "gpu0") << "nothing asked: one device";
  EXPECT_EQ(chosen(request_for("3"), node), "gpu0,gpu1,gpu2");
  EXPECT_EQ(chosen(request_for("auto"), node), "gpu0,gpu1,gpu2,gpu3");
  EXPECT_EQ(chosen(request_for("-1"), node), "gpu0,gpu1,gpu2,gpu3");
  EXPECT_EQ(chosen(request_for("2,3"), node), "gpu2,gpu3");
  EXPECT_EQ(chosen(request_for("3,1"), node), "gpu3,gpu1");
  EXPECT_EQ(chosen(request_for("GPU-2,1"), node), "gpuGPU-2aaa,gpu1") << "a UUID stays one: CUDA may count otherwise";
}

TEST(ChooseDevices, XpuIsEveryGpuOfIntelAndOfNobodyElse) {
  AllocatedNode intel = gpu_node(2);
  intel.gpus.vendor = GpuVendor::kIntel;
  EXPECT_EQ(chosen(request_for_processes("xpu"), intel), "gpu0,gpu1");
  EXPECT_THAT(refusal_of([] { choose_devices(request_for_processes("xpu"), gpu_node(2)); }),
              mentions({"'--nproc-per-node xpu'", "'host'", "'--nproc-per-node gpu'"}));
  EXPECT_NE(refusal_of([] { choose_devices(request_for_processes("xpu"), cpu_node()); }).find("'host' has no GPU"),
            std::string::npos);
  EXPECT_TRUE(questions_of(request_for_processes("xpu"), environment_with({{"CUDA_VISIBLE_DEVICES", ""}})).gpus);
}

TEST(ChooseDevices, WithoutGpusACountIsCpuRanks) {
  EXPECT_EQ(chosen(request_for(""), cpu_node()), "cpu0");
  EXPECT_EQ(chosen(request_for("3"), cpu_node(2)), "cpu0,cpu1,cpu2") << "more than CPUs is the user's choice";
  EXPECT_EQ(chosen(request_for("auto"), cpu_node(16)), "cpu0");
}

TEST(ChooseDevices, WithoutGpusThoseByNameAreRefusedWithTheReason) {
  for (const char* text : {"-1", "0,1", "2,"}) {
    const std::string refusal = refusal_of([&] { choose_devices(request_for(text), cpu_node()); });
    EXPECT_NE(refusal.find("'host' has no GPU: there is no libnvidia-ml.so.1"), std::string::npos) << refusal;
  }
}

TEST(ChooseDevices, MoreThanThereAreIsRefusedWithWhatWouldDo) {
  EXPECT_EQ(refusal_of([] { choose_devices(request_for("8"), gpu_node(4)); }),
            "'--devices 8' asks for 8 devices, but 'host' has 4 GPUs | use '--devices 4', or '--accelerator cpu' for 8 "
            "CPU ranks");
  EXPECT_THAT(refusal_of([] { choose_devices(request_for("1,9"), gpu_node(4)); }),
              mentions({"'9'", "'--devices 1,9'", "'host'", "'0'", "'3'"}));
}

TEST(ChooseDevices, AcceleratorCpuMakesRanksAndRefusesNamedGpus) {
  EXPECT_EQ(chosen(with_accelerator(request_for("3"), DeviceKind::kCpu), gpu_node(4)), "cpu0,cpu1,cpu2");
  EXPECT_EQ(chosen(with_accelerator(request_for("auto"), DeviceKind::kCpu), gpu_node(4)), "cpu0");
  for (const char* text : {"0,1", "-1"}) {
    const auto choose = [&] { choose_devices(with_accelerator(request_for(text), DeviceKind::kCpu), gpu_node(4)); };
    EXPECT_THAT(refusal_of(choose), mentions({"'--devices " + std::string(text), "'--accelerator cpu'"}));
  }
}

TEST(ChooseDevices, AcceleratorGpuNeedsOne) {
  EXPECT_EQ(chosen(with_accelerator(request_for("2"), DeviceKind::kGpu), gpu_node(4)), "gpu0,gpu1");
  EXPECT_THAT(refusal_of([] { choose_devices(with_accelerator(request_for("2"), DeviceKind::kGpu), cpu_node()); }),
              mentions({"'--accelerator gpu'", "'host'", "'--accelerator cpu'"}));
  LaunchRequest as_typed = with_accelerator(request_for("2"), DeviceKind::kGpu);
  as_typed.accelerator_word = "cuda";
  EXPECT_THAT(refusal_of([&] { choose_devices(as_typed, cpu_node()); }), mentions({"'--accelerator cuda' is not"}));
}

TEST(ChooseDevices, AcceleratorOfAVendorNeedsAGpuOfIt) {
  const auto refusal = [](const char* word, const AllocatedNode& node) {
    LaunchRequest request = with_accelerator(request_for("2"), DeviceKind::kGpu);
    request.accelerator_word = word;
    return refusal_of([&] { choose_devices(request, node); });
  };
  EXPECT_EQ(refusal("rocm", cpu_node()),
            "'--accelerator rocm' is not available: 'host' has no GPU of AMD | use '--accelerator cpu'");
  EXPECT_EQ(refusal("XPU", gpu_node(2)),
            "'--accelerator XPU' is not available: 'host' has no GPU of Intel | use '--accelerator cpu', or "
            "'--accelerator gpu'");
  AllocatedNode amd = gpu_node(2);
  amd.gpus.vendor = GpuVendor::kAmd;
  EXPECT_EQ(refusal("rocm", amd), refusal("cuda", amd)) << "both are accepted";
  AllocatedNode closed = cpu_node();
  closed.gpus = {GpuAnswer::kFailed, {}, "no permission to use /dev/kfd", GpuVendor::kAmd};
  EXPECT_THAT(refusal("rocm", closed), mentions({"no permission to use /dev/kfd"}));
}

TEST(ChooseDevices, ProcessesCountAsTorchrunDoes) {
  EXPECT_EQ(chosen(request_for_processes("3"), gpu_node(4)), "gpu0,gpu1,gpu2");
  EXPECT_EQ(chosen(request_for_processes("auto"), gpu_node(4)), "gpu0,gpu1,gpu2,gpu3");
  EXPECT_EQ(chosen(request_for_processes("auto"), cpu_node(2)), "cpu0,cpu1");
  EXPECT_EQ(chosen(request_for_processes("cpu"), cpu_node(2)), "cpu0,cpu1");
  EXPECT_EQ(chosen(request_for_processes("gpu"), gpu_node(2)), "gpu0,gpu1");
  EXPECT_NE(refusal_of([] { choose_devices(request_for_processes("gpu"), cpu_node()); }), "");
}

TEST(ChooseDevices, MoreProcessesThanGpusShareNoneAndAreWarned) {
  const DeviceChoice choice = choose_devices(request_for_processes("6"), gpu_node(4));
  EXPECT_EQ(text_of(choice.accelerator.value), "cpu");
  EXPECT_EQ(choice.devices.size(), 6U);
  EXPECT_EQ(choice.warnings, std::vector<std::string>{"'--nproc-per-node 6' is more than the 4 GPUs of 'host': no "
                                                      "worker gets a GPU of its own"});
}

TEST(ChooseDevices, DevicesAndProcessesMustAgree) {
  LaunchRequest request = request_for("4");
  request.nproc_per_node = workers_flag("2");
  EXPECT_THAT(refusal_of([&] { choose_devices(request, cpu_node()); }),
              mentions({"'--devices 4'", "4", "'--nproc-per-node 2'", "2 workers"}));
  request.nproc_per_node = workers_flag("4");
  EXPECT_EQ(choose_devices(request, cpu_node()).devices.size(), 4U);
}

TEST(ChooseDevices, NarrowsWhatWorkersSeeOnlyWhenGpusWerePicked) {
  const AllocatedNode node = gpu_node(4);
  const auto visible = [&](const LaunchRequest& request) { return choose_devices(request, node).visible_devices; };
  EXPECT_EQ(visible(request_for("2,3")), "2,3");
  EXPECT_EQ(visible(request_for("2")), "0,1");
  EXPECT_EQ(visible(request_for("4")), std::nullopt) << "all of them";
  EXPECT_EQ(visible(request_for("auto")), std::nullopt);
  EXPECT_EQ(visible(request_for("")), std::nullopt) << "nothing was asked";
  EXPECT_EQ(visible(request_for_processes("2")), std::nullopt) << "torchrun leaves it alone";
  EXPECT_EQ(visible(with_accelerator(request_for("2"), DeviceKind::kCpu)), std::nullopt);
}

TEST(ChooseDevices, SpeaksTheLaunchersOwnVisibleDevices) {
  AllocatedNode node = gpu_node(0);
  node.gpus.gpus = {{5, "GPU-5aaa", "5", false}, {2, "GPU-2aaa", "GPU-2aaa", false}, {7, "GPU-7aaa", "7", false}};
  EXPECT_EQ(choose_devices(request_for("1,2"), node).visible_devices, "GPU-2aaa,7");
  EXPECT_EQ(choose_devices(request_for("1"), node).visible_devices, "5");
}

TEST(ChooseDevices, TakesTheBeginningOfAUuidWhenItNamesOneGpu) {
  AllocatedNode node = gpu_node(3);
  node.gpus.gpus[2].uuid = "GPU-1bbb";
  EXPECT_THAT(refusal_of([&] { choose_devices(request_for("GPU-1"), node); }),
              mentions({"2 GPUs", "'host'", "UUID", "'GPU-1'"}));
  EXPECT_EQ(chosen(request_for("GPU-1b"), node), "gpuGPU-1bbb");
  EXPECT_THAT(refusal_of([&] { choose_devices(request_for("GPU-9"), node); }),
              mentions({"'GPU-9'", "'--devices GPU-9,'", "'host'", "'0'", "'2'"}));
  EXPECT_EQ(refusal_of([&] { choose_devices(request_for("1,GPU-1a"), node); }),
            "'--devices 1,GPU-1a' names GPU 'GPU-1a' twice | name every GPU once");
}

AllocatedNode divided_node() {
  AllocatedNode node = gpu_node(1);
  for (const char* uuid : {"MIG-ab", "MIG-cd"}) node.gpus.gpus.push_back({1, uuid, uuid, false, "GPU-1aaa"});
  return node;
}

TEST(ChooseDevices, CountsInstancesOfADividedGpu) {
  const AllocatedNode node = divided_node();
  EXPECT_EQ(chosen(request_for("-1"), node), "gpu0,gpuMIG-ab,gpuMIG-cd");
  EXPECT_EQ(chosen(request_for("2,MIG-ab"), node), "gpuMIG-cd,gpuMIG-ab");
  EXPECT_EQ(
      refusal_of([&] { choose_devices(request_for("GPU-1"), node); }),
      "GPU 'GPU-1' of '--devices GPU-1,' is in MIG mode: programs use its instances | name those, such as 'MIG-ab'");
}

TEST(ChooseDevices, LeavesAClosedGpuOut) {
  AllocatedNode node = gpu_node(2);
  node.gpus.gpus[0].mode = ComputeMode::kProhibited;
  node.gpus.detail = "GPU 0's compute mode is 'prohibited'";
  EXPECT_EQ(chosen(request_for("1"), node), "gpu1");
  EXPECT_EQ(refusal_of([&] { choose_devices(request_for("0,1"), node); }),
            "GPU '0' of '--devices 0,1' may not be used: its compute mode is 'prohibited' | name others, or use "
            "'nvidia-smi -i 0 -c DEFAULT' as root");
}

TEST(ChooseDevices, LeavesALostGpuOutAndSaysSo) {
  AllocatedNode node = gpu_node(3);
  node.gpus.gpus[1].lost = true;
  node.gpus.detail = "GPU 1 is lost";
  const DeviceChoice choice = choose_devices(request_for("auto"), node);
  EXPECT_EQ(ids_of(choice.devices), "gpu0,gpu2");
  EXPECT_EQ(choice.visible_devices, "0,2");
  EXPECT_EQ(choice.warnings, std::vector<std::string>{"1 GPU of 'host' not used: GPU 1 is lost"});
  EXPECT_EQ(choose_devices(request_for_processes("2"), node).visible_devices, "0,2")
      << "else the second worker would get the lost one";
  EXPECT_NE(refusal_of([&] { choose_devices(request_for("0,1"), node); }).find("is lost"), std::string::npos);
  EXPECT_NE(refusal_of([&] { choose_devices(request_for("3"), node); }).find("has 2 GPUs"), std::string::npos);
}

TEST(ChooseDevices, FallsBackToCpusWithAWarningWhenTheDriverFails) {
  AllocatedNode node = cpu_node();
  node.gpus = {GpuAnswer::kDriverNotLoaded, {}, "the NVIDIA driver is not loaded"};
  EXPECT_EQ(choose_devices(request_for("2"), node).warnings,
            std::vector<std::string>{"using CPUs: the NVIDIA driver is not loaded"});
  EXPECT_EQ(choose_devices(with_accelerator(request_for("2"), DeviceKind::kCpu), node).warnings,
            std::vector<std::string>());
}

}  // namespace
}  // namespace lrun::launcher
