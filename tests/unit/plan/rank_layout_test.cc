#include "plan/rank_layout.h"

#include <gtest/gtest.h>

#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

NodeDevices node_with(int devices, const std::string& name = "node") {
  NodeDevices node{name, {}};
  for (int i = 0; i < devices; ++i) node.devices.push_back({DeviceKind::kCpu, std::to_string(i)});
  return node;
}

TEST(RankLayout, DdpIsOneProcessADeviceOnEveryNode) {
  const auto layout = layout_ranks(find_strategy("ddp").value(), std::vector<NodeDevices>(4, node_with(8)));
  ASSERT_EQ(layout.size(), 4U);
  int expected_rank = 0;
  for (int node = 0; node < 4; ++node) {
    const NodePlan& planned = layout[static_cast<std::size_t>(node)];
    ASSERT_EQ(planned.workers.size(), 8U);
    for (int local = 0; local < 8; ++local) {
      const WorkerPlan& worker = planned.workers[static_cast<std::size_t>(local)];
      EXPECT_EQ(worker.rank, 8 * node + local);
      EXPECT_EQ(worker.rank, expected_rank++);
      EXPECT_EQ(worker.local_rank, local);
      EXPECT_EQ(worker.node_rank, node);
      EXPECT_EQ(ids_of(worker.devices), "cpu" + std::to_string(local));
    }
  }
  EXPECT_EQ(expected_rank, 32);
}

TEST(RankLayout, UnequalNodesFollowOneAnother) {
  // The table of launch-contract 3.5: 4, 1, 2, 3 and 5 workers.
  const auto layout = layout_ranks(find_strategy("ddp").value(),
                                   {node_with(4), node_with(1), node_with(2), node_with(3), node_with(5)});
  std::vector<int> bases;
  for (const NodePlan& node : layout) bases.push_back(node.base_rank);
  EXPECT_EQ(bases, (std::vector<int>{0, 4, 5, 7, 10}));
  EXPECT_EQ(layout.back().workers.back().rank, 14);
}

TEST(RankLayout, DpIsOneProcessWithAllDevices) {
  const auto layout = layout_ranks(find_strategy("dp").value(), {node_with(4)});
  ASSERT_EQ(layout.front().workers.size(), 1U);
  EXPECT_EQ(ids_of(layout.front().workers.front().devices), "cpu0,cpu1,cpu2,cpu3");
}

TEST(RankLayout, DpOnSeveralNodesIsRefusedAndNamesWhatWorks) {
  const std::string text = refusal_of([] { layout_ranks(find_strategy("dp").value(), {node_with(4), node_with(4)}); });
  EXPECT_NE(text.find("'dp'"), std::string::npos) << text;
  EXPECT_NE(text.find("ddp2"), std::string::npos) << text;
  EXPECT_NE(text.find("--strategy ddp'"), std::string::npos) << text;
}

TEST(RankLayout, OneProcessANodeStartsItsRanksItself) {
  for (const Strategy strategy : {Strategy::kDdpSpawn, Strategy::kDdpFork, Strategy::kDdpNotebook}) {
    const auto layout = layout_ranks(strategy, {node_with(2, "a"), node_with(2, "b")});
    ASSERT_EQ(layout.size(), 2U);
    ASSERT_EQ(layout[1].workers.size(), 1U);
    EXPECT_EQ(layout[1].workers[0].rank, 1);
    EXPECT_EQ(ids_of(layout[1].workers[0].devices), "cpu0,cpu1");
  }
  EXPECT_THAT(refusal_of([] {
                layout_ranks(find_strategy("ddp_spawn").value(), {node_with(2, "a"), node_with(3, "b")});
              }),
              mentions({"'ddp_spawn'", "'a'", "2", "'b'", "3", "'--strategy ddp'"}));
}

TEST(RankLayout, Ddp2IsOneProcessANode) {
  const auto layout =
      layout_ranks(find_strategy("ddp2").value(), {node_with(4, "a"), node_with(2, "b"), node_with(4, "c")});
  ASSERT_EQ(layout.size(), 3U);
  for (const NodePlan& node : layout) {
    ASSERT_EQ(node.workers.size(), 1U) << node.name;
    EXPECT_EQ(node.workers.front().rank, node.node_rank);
    EXPECT_EQ(node.workers.front().local_rank, 0);
    EXPECT_EQ(node.workers.front().devices, node.devices);
  }
  EXPECT_EQ(layout[1].name, "b");
}

}  // namespace
}  // namespace lrun::launcher
