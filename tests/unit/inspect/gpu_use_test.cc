#include "inspect/gpu_use.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

namespace lrun::launcher {
namespace {

RunStatus two_ranks() {
  RunStatus status{.pid = 100, .world_size = 2};
  for (int rank = 0; rank < 2; ++rank) status.workers.push_back({rank, rank, 200 + rank, true, "", ""});
  return status;
}

/// 300 is a child's child of rank 0, 301 a child of rank 1, 400 of no rank.
pid_t parent_of(pid_t pid) {
  const std::map<pid_t, pid_t> parents{{300, 250}, {250, 200}, {301, 201}, {200, 100}, {201, 100}, {400, 1}};
  const auto parent = parents.find(pid);
  return parent == parents.end() ? 0 : parent->second;
}

TEST(GpuUse, OfARankIsThatOfItsProcessesOnEachGpu) {
  RunStatus status = two_ranks();
  add_gpu_use(status,
              {{200, {0, 100, 40}}, {300, {0, 20, 5}}, {301, {0, 7, -1}}, {301, {1, -1, 3}}, {400, {0, 999, 9}}},
              parent_of);
  EXPECT_EQ(status.workers[0].gpus, (std::vector<GpuUse>{{0, 120, 45}}));
  EXPECT_EQ(status.workers[1].gpus, (std::vector<GpuUse>{{0, 7, -1}, {1, -1, 3}}));
}

TEST(GpuUse, IsNotThatOfAnotherProcessWithThePidOfAnEndedRank) {
  RunStatus status = two_ranks();
  status.workers[0].running = false;
  add_gpu_use(status, {{200, {0, 100, 40}}}, parent_of);
  EXPECT_TRUE(status.workers[0].gpus.empty());
}

TEST(GpuUse, StandsInTheJsonOfTheStatus) {
  RunStatus status = two_ranks();
  status.workers[0].gpus = {{3, 120, -1}};
  const auto json = nlohmann::json::parse(to_json(status));
  EXPECT_EQ(json["workers"][0]["gpus"][0], nlohmann::json::parse(R"({"gpu":3,"memory_mib":120,"percent":null})"));
  EXPECT_TRUE(json["workers"][1]["gpus"].empty());
}

}  // namespace
}  // namespace lrun::launcher
