// Which devices a process takes: decisions, without a device.

#include "runtime/session/devices.h"

#include <gtest/gtest.h>
#include <lrun/error.h>

#include <functional>
#include <string>
#include <vector>

namespace lrun::detail {
namespace {

using Devices = std::vector<at::Device>;

World rank_of_node(int local_rank, int local_world_size) {
  World world;
  world.rank = world.local_rank = local_rank;
  world.world_size = world.local_world_size = local_world_size;
  return world;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Unsupported& error) {
    return error.what();
  }
  return "accepted";
}

at::Device cuda(int index) { return {at::kCUDA, static_cast<at::DeviceIndex>(index)}; }

const std::string kOnCpus = "; on CPUs: lrun --accelerator cpu, or SessionOptions::devices = {\"cpu\"}";

TEST(DefaultGpus, AreNoneWhereNoneAreSeen) { EXPECT_EQ(default_gpus(World(), true, {}), Devices()); }

TEST(DefaultGpus, GiveEachRankOfANodeItsOwn) {
  EXPECT_EQ(default_gpus(rank_of_node(0, 1), false, {.count = 4}), Devices{cuda(0)});
  EXPECT_EQ(default_gpus(rank_of_node(3, 4), false, {.count = 4}), Devices{cuda(3)});
  EXPECT_EQ(default_gpus(rank_of_node(1, 2), false, {.count = 4}), Devices{cuda(1)});
}

TEST(DefaultGpus, TakeTheOnlyOneThatAProcessWasGiven) {
  EXPECT_EQ(default_gpus(rank_of_node(3, 4), false, {.count = 1, .named = "3"}), Devices{cuda(0)});
}

TEST(DefaultGpus, AreAllOfThemWhereBatchesAreSplit) {
  EXPECT_EQ(default_gpus(World(), true, {.count = 3}), (Devices{cuda(0), cuda(1), cuda(2)}));
}

TEST(DefaultGpus, AreRefusedToMoreRanksThanThereAre) {
  EXPECT_EQ(refusal([] { default_gpus(rank_of_node(0, 4), false, {.count = 2}); }),
            "this node has 4 ranks, and each sees 2 GPUs: start one rank a GPU" + kOnCpus);
  EXPECT_EQ(refusal([] { default_gpus(rank_of_node(0, 2), false, {.count = 1}); }),
            "this node has 2 ranks, and each sees 1 GPU: start one rank a GPU" + kOnCpus);
}

TEST(DefaultGpus, AreMissedAloudWhereTheNodeSeemsToHaveSome) {
  EXPECT_EQ(why_on_cpus("", {.count = 1}), std::nullopt);
  const std::string hint = "; if CPUs are meant" + kOnCpus.substr(std::string("; on CPUs").size());
  EXPECT_EQ(why_on_cpus("libtorch_cuda.so: no such file", {}),
            "trains on the CPU, although this node has a driver of GPUs: LibTorch's CUDA library does not load "
            "(libtorch_cuda.so: no such file)" +
                hint);
  EXPECT_EQ(why_on_cpus("", {.count = 0, .named = "7"}),
            "trains on the CPU, although this node has a driver of GPUs: there is no GPU that this process can use "
            "(CUDA_VISIBLE_DEVICES is '7'), and lrun doctor says why" +
                hint);
}

TEST(Devices, AreSpelledAsLibTorchDoes) {
  EXPECT_EQ(parse_devices({"cpu", "cpu:0"}, World(), {}), (Devices{at::kCPU, at::kCPU}));
  EXPECT_EQ(parse_devices({"cuda:2", "cuda:0"}, World(), {.count = 4}), (Devices{cuda(2), cuda(0)}));
  EXPECT_EQ(parse_devices({"cuda"}, rank_of_node(1, 2), {.count = 2}), Devices{cuda(1)}) << "the local rank's";
  EXPECT_EQ(parse_devices({"cuda"}, rank_of_node(1, 2), {.count = 1, .named = "1"}), Devices{cuda(0)});
  EXPECT_EQ(refusal([] { parse_devices({"cuda:x"}, World(), {}); }),
            "device 'cuda:x' is none that LibTorch knows: it has names such as 'cuda:1'" + kOnCpus);
}

TEST(Devices, OfAProcessAreOfOneKind) {
  EXPECT_EQ(refusal([] {
              parse_devices({"cuda:0", "cpu"}, World(), {.count = 1});
            }),
            "device 'cpu' is of another kind than 'cuda:0': one process trains on devices of one kind" + kOnCpus);
}

TEST(Devices, HaveToBeVisible) {
  require_visible({at::kCPU, cuda(0), cuda(1)}, {.count = 2});
  EXPECT_EQ(refusal([] {
              require_visible({cuda(0), cuda(2)}, {.count = 2});
            }),
            "device 'cuda:2' is not there: this process sees 2 GPUs, counted from 0");
  EXPECT_EQ(refusal([] { require_visible({cuda(1)}, {.count = 1, .named = "5"}); }),
            "device 'cuda:1' is not there: this process sees 1 GPU (CUDA_VISIBLE_DEVICES is '5'), counted from 0");
  EXPECT_EQ(refusal([] { require_visible({cuda(0)}, {.count = 0, .named = ""}); }),
            "device 'cuda:0' needs a GPU, and there is none that this process can use (CUDA_VISIBLE_DEVICES is ''): "
            "lrun doctor says why" +
                kOnCpus);
}

}  // namespace
}  // namespace lrun::detail
