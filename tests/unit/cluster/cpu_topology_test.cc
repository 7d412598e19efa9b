#include "cluster/cpu_topology.h"

#include <gtest/gtest.h>

#include "file_tree.h"

namespace lrun::launcher {
namespace {

void write_cpu(const FileTree& tree, int cpu, const std::string& siblings, int package,
               const std::string& third_level) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
  tree.write(folder + "/topology/thread_siblings_list", siblings + "\n");
  tree.write(folder + "/topology/physical_package_id", std::to_string(package) + "\n");
  tree.write(folder + "/cache/index0/level", "1\n");
  tree.write(folder + "/cache/index0/type", "Data\n");
  tree.write(folder + "/cache/index0/shared_cpu_list", siblings + "\n");
  tree.write(folder + "/cache/index3/level", "3\n");
  tree.write(folder + "/cache/index3/type", "Unified\n");
  tree.write(folder + "/cache/index3/shared_cpu_list", third_level + "\n");
}

/// Two sockets of two cores with two threads each; the second thread of core N is CPU N + 4.
void write_two_sockets(const FileTree& tree) {
  for (const int cpu : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const int core = cpu % 4;
    write_cpu(tree, cpu, std::to_string(core) + "," + std::to_string(core + 4), core / 2,
              core < 2 ? "0-1,4-5" : "2-3,6-7");
  }
  tree.write("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
  tree.write("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
  tree.write("/sys/devices/system/node/online", "0-1\n");
}

TEST(ReadTopology, FindsCoresThreadsNodesSocketsAndCaches) {
  const FileTree tree;
  write_two_sockets(tree);
  const CpuTopology topology = read_topology({0, 1, 2, 3, 4, 5, 6, 7}, tree.root());
  EXPECT_EQ(topology.cores,
            (std::vector<Core>{{{0, 4}, 0, 0, 0}, {{1, 5}, 0, 0, 0}, {{2, 6}, 1, 1, 2}, {{3, 7}, 1, 1, 2}}));
  EXPECT_EQ(topology.cpus(), 8);
}

TEST(ReadTopology, LeavesOutWhatMayNotBeUsed) {
  const FileTree tree;
  write_two_sockets(tree);
  EXPECT_EQ(read_topology({6, 5, 1}, tree.root()).cores, (std::vector<Core>{{{1, 5}, 0, 0, 0}, {{6}, 1, 1, 2}}));
}

TEST(ReadTopology, IsSimpleWhereTheKernelSaysNothing) {
  EXPECT_EQ(read_topology({2, 3}, FileTree().root()).cores, (std::vector<Core>{{{2}, 0, 0, 2}, {{3}, 0, 0, 3}}));
}

TEST(ReadTopology, OfThisMachineHoldsEveryCpuOnce) {
  std::vector<int> cpus;
  for (const Core& core : read_topology({0}).cores) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  EXPECT_EQ(cpus, std::vector<int>{0});
}

TEST(ParseCpuList, ReadsTheKernelsForm) {
  EXPECT_EQ(parse_cpu_list("0-2,8"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>());
  EXPECT_EQ(parse_cpu_list("3,x"), std::vector<int>{3});
  EXPECT_EQ(parse_cpu_list("5-3"), std::vector<int>());
  EXPECT_EQ(parse_cpu_list("0-99999999"), std::vector<int>()) << "no machine has as many";
}

TEST(NumaNodeOf, IsThePciDevices) {
  const FileTree tree;
  tree.write("/sys/bus/pci/devices/0000:10:00.0/numa_node", "1\n");
  tree.write("/sys/bus/pci/devices/0000:11:00.0/numa_node", "-1\n");
  EXPECT_EQ(numa_node_of("0000:10:00.0", tree.root()), 1);
  EXPECT_EQ(numa_node_of("0000:11:00.0", tree.root()), -1);
  EXPECT_EQ(numa_node_of("0000:12:00.0", tree.root()), -1);
  EXPECT_EQ(numa_node_of("", tree.root()), -1);
}

}  // namespace
}  // namespace lrun::launcher
