#include "cluster/nvml.h"

#include <unistd.h>

#include "fake_driver.h"

namespace lrun::launcher {
namespace {

using Nvml = FakeDriver;

TEST_F(Nvml, GivesIndexAndUuidOfEveryGpu) {
  answers(0, 0, 2, kNone);
  const GpuInventory inventory = ask_nvml();
  EXPECT_EQ(inventory.answer, GpuAnswer::kCounted);
  ASSERT_EQ(inventory.gpus.size(), 2U);
  EXPECT_EQ(inventory.gpus[1], (Gpu{1, "GPU-bx", "1", false, "", "Fake \xff", "0000:0b:00.0"}));
}

TEST_F(Nvml, TellsALostGpuFromTheOthers) {
  answers(0, 0, 3, 1);
  const GpuInventory inventory = ask_nvml();
  ASSERT_EQ(inventory.gpus.size(), 3U);
  EXPECT_FALSE(inventory.gpus[0].lost);
  EXPECT_EQ(inventory.gpus[1], (Gpu{1, "", "1", true}));
  EXPECT_FALSE(inventory.gpus[2].lost);
  EXPECT_EQ(inventory.detail, "GPU 1 is lost");
}

TEST_F(Nvml, TellsADriverThatIsNotLoadedFromOneWithoutGpus) {
  answers(9, 0, 0, kNone);
  EXPECT_EQ(ask_nvml().answer, GpuAnswer::kDriverNotLoaded);
  answers(0, 0, 0, kNone);
  EXPECT_EQ(ask_nvml(), (GpuInventory{GpuAnswer::kCounted, {}, "the NVIDIA driver reports no GPU"}));
}

TEST_F(Nvml, KeepsTheDriversWordsWhenItFails) {
  answers(999, 0, 0, kNone);
  EXPECT_EQ(ask_nvml(), (GpuInventory{GpuAnswer::kFailed, {}, "the NVIDIA driver reports 'Unknown Error'"}));
  answers(0, 999, 4, kNone);
  EXPECT_EQ(ask_nvml().answer, GpuAnswer::kFailed);
}

TEST_F(Nvml, PutsInstancesInThePlaceOfADividedGpu) {
  answers(0, 0, 3, kNone);
  divide(1);
  const GpuInventory inventory = ask_nvml();
  std::string names;
  for (const Gpu& gpu : inventory.gpus) names += gpu.visible_as + " ";
  EXPECT_EQ(names, "0 MIG-ax MIG-cx 2 ");
  EXPECT_EQ(inventory.gpus[2].index, 1);
  EXPECT_EQ(inventory.gpus[2].gpu_uuid, "GPU-bx");
  EXPECT_EQ(inventory.gpus[2].pci_address, "0000:0b:00.0");
}

TEST_F(Nvml, SaysWhoComputesOnAGpuAndWhoMay) {
  answers(0, 0, 2, kNone);
  occupy(3, static_cast<unsigned>(getpid()));
  const GpuInventory inventory = ask_nvml();
  ASSERT_EQ(inventory.gpus.size(), 2U);
  EXPECT_EQ(inventory.gpus[0].mode, ComputeMode::kExclusive);
  ASSERT_EQ(inventory.gpus[0].processes.size(), 1U);
  EXPECT_EQ(inventory.gpus[0].processes[0], (GpuProcess{getpid(), 300, "test_cluster"}));
  EXPECT_TRUE(inventory.gpus[1].processes.empty());
  occupy(2, 0);
  EXPECT_EQ(ask_nvml().gpus[0].mode, ComputeMode::kProhibited);
}

TEST_F(Nvml, LeavesTheDriverAfterEveryQuestion) {
  for (const int counting : {0, 999}) {
    answers(0, counting, 1, kNone);
    ask_nvml();
    EXPECT_EQ(open_users(), 0) << "after counting gave " << counting;
  }
}

}  // namespace
}  // namespace lrun::launcher
