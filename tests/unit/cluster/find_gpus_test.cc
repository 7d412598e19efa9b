#include "cluster/find_gpus.h"

#include "fake_driver.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

using FindGpus = FakeDriver;
constexpr Duration kEnough(20'000);

TEST_F(FindGpus, GivesWhatTheDriverSaysFromAProcessOfItsOwn) {
  answers(0, 0, 2, 1);
  const GpuInventory inventory = find_gpus(kEnough);
  ASSERT_EQ(inventory.gpus.size(), 2U) << inventory.detail;
  EXPECT_EQ(inventory.gpus[0].uuid, "GPU-ax");
  EXPECT_TRUE(inventory.gpus[1].lost);
  EXPECT_EQ(open_users(), 0) << "this process has not touched the driver";
}

TEST_F(FindGpus, SurvivesADriverThatCrashes) {
  trouble('c');
  const GpuInventory inventory = find_gpus(kEnough);
  EXPECT_EQ(inventory, (GpuInventory{GpuAnswer::kFailed, {}, inventory.detail}));
  EXPECT_THAT(inventory.detail, mentions({"NVIDIA driver", "SIGSEGV"}));
}

TEST_F(FindGpus, DoesNotWaitForADriverThatHangs) {
  trouble('h');
  const GpuInventory inventory = find_gpus(Duration(50));
  EXPECT_EQ(inventory, (GpuInventory{GpuAnswer::kFailed, {}, inventory.detail}));
  EXPECT_THAT(inventory.detail, mentions({"NVIDIA driver", "50ms"}));
}

TEST(InventoryText, ComesBackWhole) {
  GpuInventory inventory{GpuAnswer::kCounted, {}, "GPU 1 is lost"};
  inventory.gpus.push_back({0, "MIG-1", "MIG-1", false, "GPU-1", "NVIDIA H100 \"80GB\"", "0000:10:00.0"});
  inventory.gpus[0].mode = ComputeMode::kExclusive;
  inventory.gpus[0].processes = {{4242, 300, "python3"}, {1, -1, ""}};
  inventory.gpus.push_back({1, "", "1", true});
  EXPECT_EQ(read_inventory(write_inventory(inventory)), inventory);
}

TEST(InventoryText, IsRefusedWhenItIsNotOne) {
  for (const char* text : {"", "{}", "[1]", "{\"answer\": 4, \"gpus\": 3, \"detail\": \"\"}", "segmentation fault"}) {
    EXPECT_EQ(read_inventory(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lrun::launcher
