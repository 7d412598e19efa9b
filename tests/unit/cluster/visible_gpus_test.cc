#include "cluster/visible_gpus.h"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <utility>

#include "support/mentions.h"

namespace lrun::launcher {
namespace {

GpuInventory four_gpus() {
  GpuInventory machine{GpuAnswer::kCounted, {}, ""};
  for (const char* uuid : {"GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"}) {
    const int index = static_cast<int>(machine.gpus.size());
    machine.gpus.push_back({index, uuid, std::to_string(index), false});
  }
  return machine;
}

Environment with(std::initializer_list<std::pair<const std::string, std::string>> variables) {
  return Environment(std::map<std::string, std::string, std::less<>>(variables));
}

Environment cuda(const std::string& value) { return with({{"CUDA_VISIBLE_DEVICES", value}}); }

std::string indices_of(const GpuInventory& seen) {
  std::string text;
  for (const Gpu& gpu : seen.gpus) text += std::to_string(gpu.index) + " ";
  return text;
}

std::string names_of(const GpuInventory& seen) {
  std::string text;
  for (const Gpu& gpu : seen.gpus) text += gpu.visible_as + " ";
  return text;
}

std::string indices_under(const std::string& cuda_visible_devices) {
  return indices_of(visible_gpus(four_gpus(), cuda(cuda_visible_devices)));
}

TEST(VisibleGpus, AreAllWithoutTheVariable) {
  EXPECT_EQ(indices_of(visible_gpus(four_gpus(), Environment())), "0 1 2 3 ");
}

TEST(VisibleGpus, FollowTheVariablesOrder) { EXPECT_EQ(indices_under("3, 1"), "3 1 "); }

TEST(VisibleGpus, MayBeNamedByUuidAndKeepThatName) {
  const GpuInventory seen = visible_gpus(four_gpus(), cuda("GPU-bb33,GPU-c"));
  ASSERT_EQ(seen.gpus.size(), 2U);
  EXPECT_EQ(seen.gpus[0], (Gpu{2, "GPU-bb33", "GPU-bb33", false}));
  EXPECT_EQ(seen.gpus[1].visible_as, "GPU-c") << "the beginning of a UUID is enough for CUDA";
}

TEST(VisibleGpus, EndAtTheFirstEntryThatNamesNothing) {
  EXPECT_EQ(indices_under("2,-1,0"), "2 ");
  EXPECT_EQ(indices_under("0,9,1"), "0 ");
  EXPECT_EQ(indices_under("0,GPU-aa,1"), "0 ") << "two UUIDs begin so";
  EXPECT_EQ(indices_under("0,,1"), "0 ");
}

TEST(VisibleGpus, AreNoneForAnEmptyValueAndSayWhy) {
  EXPECT_EQ(indices_under(""), "");
  EXPECT_EQ(indices_under("-1"), "");
  EXPECT_THAT(visible_gpus(four_gpus(), cuda("")).detail, mentions({"CUDA_VISIBLE_DEVICES", "''"}));
}

TEST(VisibleGpus, AreNoneWhenOneIsNamedTwice) { EXPECT_EQ(indices_under("1,2,1"), ""); }

/// GPU 0 is whole, GPU 1 is divided into two.
GpuInventory divided_gpus() {
  GpuInventory machine{GpuAnswer::kCounted, {}, ""};
  machine.gpus.push_back({0, "GPU-aa11", "0", false});
  for (const char* uuid : {"MIG-ab12", "MIG-ac34"}) machine.gpus.push_back({1, uuid, uuid, false, "GPU-bb22"});
  return machine;
}

TEST(VisibleGpus, CountInstancesByUuid) {
  EXPECT_EQ(names_of(visible_gpus(divided_gpus(), Environment())), "0 MIG-ab12 MIG-ac34 ");
  EXPECT_EQ(names_of(visible_gpus(divided_gpus(), cuda("MIG-ac34,0"))), "MIG-ac34 0 ");
  EXPECT_EQ(names_of(visible_gpus(divided_gpus(), cuda("MIG-a"))), "") << "two begin so";
  EXPECT_EQ(names_of(visible_gpus(divided_gpus(), cuda("MIG-ff"))), "") << "there is no such instance";
}

TEST(VisibleGpus, OfADividedGpuAreItsFirstInstance) {
  EXPECT_EQ(names_of(visible_gpus(divided_gpus(), cuda("1"))), "MIG-ab12 ");
  EXPECT_EQ(names_of(visible_gpus(divided_gpus(), cuda("GPU-bb"))), "MIG-ab12 ");
}

TEST(VisibleGpus, BelieveInInstancesThatOlderDriversDoNotList) {
  EXPECT_EQ(names_of(visible_gpus(four_gpus(), cuda("MIG-1234,MIG-5678"))), "MIG-1234 MIG-5678 ");
}

GpuInventory four_amd_gpus() {
  GpuInventory machine = four_gpus();
  machine.vendor = GpuVendor::kAmd;
  return machine;
}

TEST(VisibleGpus, OfAmdCountWhatTheLowerLayerLeaves) {
  const auto seen = [](std::initializer_list<std::pair<const std::string, std::string>> variables) {
    const GpuInventory inventory = visible_gpus(four_amd_gpus(), with(variables));
    return indices_of(inventory) + "as " + names_of(inventory);
  };
  EXPECT_EQ(seen({}), "0 1 2 3 as 0 1 2 3 ");
  EXPECT_EQ(seen({{"ROCR_VISIBLE_DEVICES", "3,GPU-aa22"}}), "3 1 as 0 1 ");
  EXPECT_EQ(seen({{"ROCR_VISIBLE_DEVICES", "3,1"}, {"HIP_VISIBLE_DEVICES", "1"}}), "1 as 1 ");
  EXPECT_EQ(seen({{"HIP_VISIBLE_DEVICES", "2"}, {"CUDA_VISIBLE_DEVICES", "0"}}), "2 as 2 ") << "HIP's own comes first";
  EXPECT_EQ(seen({{"CUDA_VISIBLE_DEVICES", "2"}}), "2 as 2 ") << "HIP reads it as well";
}

TEST(VisibleGpus, OfIntelMayBeTiles) {
  GpuInventory machine = four_gpus();
  machine.vendor = GpuVendor::kIntel;
  for (Gpu& gpu : machine.gpus) gpu.uuid.clear();
  EXPECT_EQ(names_of(visible_gpus(machine, with({{"ZE_AFFINITY_MASK", "1.0,1.1,2"}}))), "1.0 1.1 2 ");
  EXPECT_EQ(names_of(visible_gpus(machine, cuda("0"))), "0 1 2 3 ") << "CUDA's variable is not theirs";
}

TEST(VisibleGpus, AreNotInventedOnAMachineWithoutGpus) {
  const GpuInventory none{GpuAnswer::kNoLibrary, {}, "there is no libnvidia-ml.so.1"};
  EXPECT_EQ(visible_gpus(none, cuda("0,1")), none);
}

TEST(SplitVisibleDevices, TrimsEntriesAndKnowsEmpty) {
  EXPECT_EQ(split_visible_devices("3, 5"), (std::vector<std::string>{"3", "5"}));
  EXPECT_EQ(split_visible_devices(" "), std::vector<std::string>());
}

}  // namespace
}  // namespace lrun::launcher
