#include "cluster/other_gpus.h"

#include <gtest/gtest.h>

#include "file_tree.h"

namespace lrun::launcher {
namespace {

constexpr const char* kNodes = "/sys/class/kfd/kfd/topology/nodes/";

void add_node(const FileTree& tree, const std::string& node, const std::string& gpu_id, const std::string& properties) {
  tree.write(kNodes + node + "/gpu_id", gpu_id + "\n");
  tree.write(kNodes + node + "/name", "gfx942\n");
  tree.write(kNodes + node + "/properties", properties);
}

TEST(AmdGpus, AreTheNodesWithSimdUnitsInTheirOrder) {
  const FileTree tree;
  tree.write("/dev/kfd", "");
  add_node(tree, "0", "0", "cpu_cores_count 96\nsimd_count 0\n");
  add_node(tree, "10", "2", "simd_count 304\nlocation_id 49920\ndomain 0\nunique_id 255\n");
  add_node(tree, "9", "1", "simd_count 304\nlocation_id 1288\ndomain 1\nunique_id 11259375\n");
  add_node(tree, "11", "0", "simd_count 304\nlocation_id 1024\ndomain 0\n");  // another container's
  const auto found = find_amd_gpus(tree.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->answer, GpuAnswer::kCounted);
  EXPECT_EQ(found->vendor, GpuVendor::kAmd);
  ASSERT_EQ(found->gpus.size(), 2U);
  EXPECT_EQ(found->gpus[0], (Gpu{0, "GPU-0000000000abcdef", "0", false, "", "gfx942", "0001:05:01.0"}));
  EXPECT_EQ(found->gpus[1].pci_address, "0000:c3:00.0");
}

TEST(AmdGpus, ThatMayNotBeUsedAreAFailureWithItsCure) {
  const FileTree tree;
  add_node(tree, "1", "1", "simd_count 304\nlocation_id 1024\n");
  const auto found = find_amd_gpus(tree.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->answer, GpuAnswer::kFailed);
  EXPECT_NE(found->detail.find("group"), std::string::npos) << found->detail;
}

TEST(AmdGpus, AreNoneWithoutTheKernelsDriver) { EXPECT_FALSE(find_amd_gpus(FileTree().root())); }

TEST(IntelGpus, AreCardsOfTheirOwn) {
  const FileTree tree;
  const std::string drivers = "/sys/bus/pci/drivers/";
  tree.write(drivers + "i915/0000:00:02.0/class", "0x030000\n");  // in the processor
  tree.write(drivers + "i915/0000:3a:00.0/class", "0x038000\n");
  tree.write(drivers + "xe/0000:1a:00.0/class", "0x038000\n");
  tree.write(drivers + "xe/0000:1b:00.0/class", "0x040300\n");  // the card's sound
  tree.write(drivers + "i915/bind", "");
  const auto found = find_intel_gpus(tree.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->vendor, GpuVendor::kIntel);
  ASSERT_EQ(found->gpus.size(), 2U);
  EXPECT_EQ(found->gpus[0].pci_address, "0000:1a:00.0");
  EXPECT_EQ(found->gpus[1].visible_as, "1");
  EXPECT_FALSE(find_intel_gpus(FileTree().root()));
}

}  // namespace
}  // namespace lrun::launcher
