#include "cluster/tpu_chips.h"

#include <gtest/gtest.h>

#include "file_tree.h"

namespace lrun::launcher {
namespace {

void add(const FileTree& tree, const std::string& address, const std::string& vendor, const std::string& device) {
  tree.write("/sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
  tree.write("/sys/bus/pci/devices/" + address + "/device", device + "\n");
}

TEST(TpuChips, AreGooglesOnThePciBus) {
  const FileTree tree;
  add(tree, "0000:00:00.0", "0x8086", "0x0063");  // another maker's device of that number
  add(tree, "0000:00:04.0", "0x1ae0", "0x0042");  // Google's network card
  add(tree, "0000:00:05.0", "0x1ae0", "0x0063");
  add(tree, "0000:00:06.0", "0x1ae0", "0x0063");
  EXPECT_EQ(find_tpu_chips(tree.root()), (TpuInventory{.asked = true, .chips = 2, .cores_per_chip = 1}));
}

TEST(TpuChips, OfTheFirstVersionsHaveTwoCores) {
  const FileTree tree;
  for (const char* const address : {"0000:00:04.0", "0000:00:05.0", "0000:00:06.0", "0000:00:07.0"}) {
    add(tree, address, "0x1ae0", "0x0027");
  }
  EXPECT_EQ(find_tpu_chips(tree.root()), (TpuInventory{.asked = true, .chips = 4, .cores_per_chip = 2}));
}

TEST(TpuChips, AreNoneWithoutThem) {
  EXPECT_EQ(find_tpu_chips(FileTree().root()), (TpuInventory{.asked = true, .chips = 0, .cores_per_chip = 1}));
}

}  // namespace
}  // namespace lrun::launcher
