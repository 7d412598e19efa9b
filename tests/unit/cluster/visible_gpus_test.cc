#include "cluster/visible_gpus.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

GpuInventory four_gpus() {
  GpuInventory machine{GpuAnswer::kCounted, {}, ""};
  for (const char* uuid : {"GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"}) {
    const int index = static_cast<int>(machine.gpus.size());
    machine.gpus.push_back({index, uuid, std::to_string(index), false});
  }
  return machine;
}

std::string indices_under(const std::optional<std::string>& cuda_visible_devices) {
  std::string text;
  for (const Gpu& gpu : visible_gpus(four_gpus(), cuda_visible_devices).gpus) text += std::to_string(gpu.index) + " ";
  return text;
}

TEST(VisibleGpus, AreAllWithoutTheVariable) { EXPECT_EQ(indices_under(std::nullopt), "0 1 2 3 "); }

TEST(VisibleGpus, FollowTheVariablesOrder) { EXPECT_EQ(indices_under("3, 1"), "3 1 "); }

TEST(VisibleGpus, MayBeNamedByUuidAndKeepThatName) {
  const GpuInventory seen = visible_gpus(four_gpus(), "GPU-bb33,GPU-c");
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
  EXPECT_EQ(visible_gpus(four_gpus(), "").detail, "CUDA_VISIBLE_DEVICES='' leaves none");
}

TEST(VisibleGpus, AreNoneWhenOneIsNamedTwice) { EXPECT_EQ(indices_under("1,2,1"), ""); }

TEST(VisibleGpus, CountAnInstanceByItsUuid) {
  const GpuInventory seen = visible_gpus(four_gpus(), "MIG-1234,MIG-5678");
  ASSERT_EQ(seen.gpus.size(), 2U);
  EXPECT_EQ(seen.gpus[1].visible_as, "MIG-5678");
}

TEST(VisibleGpus, AreNotInventedOnAMachineWithoutGpus) {
  const GpuInventory none{GpuAnswer::kNoLibrary, {}, "there is no libnvidia-ml.so.1"};
  EXPECT_EQ(visible_gpus(none, "0,1"), none);
}

TEST(SplitVisibleDevices, TrimsEntriesAndKnowsEmpty) {
  EXPECT_EQ(split_visible_devices("3, 5"), (std::vector<std::string>{"3", "5"}));
  EXPECT_EQ(split_visible_devices(" "), std::vector<std::string>());
}

}  // namespace
}  // namespace lrun
