#include "runtime/launch/placement.h"

#include <gtest/gtest.h>
#include <lrun/error.h>

#include <map>
#include <stdexcept>

namespace lrun::detail {
namespace {

using Variables = World::Variables;

Placement placed(const LaunchOptions& options, const Variables& variables = {}, bool interactive = false) {
  return place_ranks(options, variables, interactive, 8);
}

LaunchOptions with_strategy(const std::string& strategy) {
  LaunchOptions options;
  options.strategy = strategy;
  return options;
}

template <class Exception>
std::string refusal(const LaunchOptions& options, const Variables& variables = {}, bool interactive = false) {
  try {
    (void)placed(options, variables, interactive);
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

TEST(PlaceRanks, SpawnsOutsideAndForksInsideOfAnInterpreter) {
  EXPECT_EQ(placed({}).method, LaunchMethod::kSpawn);
  EXPECT_EQ(placed({}, {}, true).method, LaunchMethod::kFork);
  EXPECT_EQ(placed(with_strategy("ddp_fork")).method, LaunchMethod::kFork);
  EXPECT_EQ(placed(with_strategy("ddp_notebook")).method, LaunchMethod::kFork);
  EXPECT_EQ(placed(with_strategy("ddp_notebook"), {}, true).method, LaunchMethod::kFork);
  EXPECT_EQ(placed({}, {{"LRUN_STRATEGY", "ddp_fork"}}).method, LaunchMethod::kFork);
}

TEST(PlaceRanks, RefusesWhatCannotStartRanksHere) {
  EXPECT_EQ(refusal<Unsupported>(with_strategy("ddp"), {}, true),
            "strategy 'ddp' is started from outside the program, which an interactive interpreter cannot be: use "
            "'ddp_notebook'");
  EXPECT_EQ(refusal<Unsupported>(with_strategy("ddp_spawn"), {}, true),
            "strategy 'ddp_spawn' executes the program again, and this is an interactive interpreter: use "
            "'ddp_notebook'");
  EXPECT_EQ(refusal<Unsupported>(with_strategy("ddp")),
            "strategy 'ddp' is started from outside the program: 'lrun --strategy ddp PROGRAM'; from inside it is "
            "'ddp_spawn' or 'ddp_fork'");
  EXPECT_EQ(refusal<Unsupported>(with_strategy("ddp_spwan")),
            "launch() cannot start ranks for strategy 'ddp_spwan': did you mean 'ddp_spawn'?");
  EXPECT_EQ(refusal<Unsupported>(with_strategy("dp")),
            "launch() cannot start ranks for strategy 'dp': it knows 'ddp_spawn', 'ddp_fork' and 'ddp_notebook'");
}

TEST(PlaceRanks, CountsDevices) {
  EXPECT_EQ(placed({}).devices, std::vector<std::string>{"cpu"});
  EXPECT_EQ(placed({.devices = 3}).devices, std::vector<std::string>(3, "cpu"));
  EXPECT_EQ(placed({}, {{"LRUN_DEVICES", "cpu,cpu"}}).world_size(), 2);
  EXPECT_EQ(placed({.devices = 1}, {{"LRUN_DEVICES", "cuda:0,cuda:1"}}).devices, std::vector<std::string>{"cuda:0"});
  EXPECT_EQ(refusal<BadEnvironment>({.devices = 3}, {{"LRUN_DEVICES", "cpu,cpu"}}),
            "environment variable 'LRUN_DEVICES' gives 2 devices, and the program asks for 3");
  EXPECT_EQ(refusal<std::invalid_argument>({.devices = 0}), "a launch needs at least one device");
}

TEST(PlaceRanks, SharesTheCpusUnlessTheUserDid) {
  EXPECT_EQ(placed({.devices = 3}).threads, 2);
  EXPECT_EQ(placed({.devices = 16}).threads, 1);
  EXPECT_EQ(placed({.devices = 3}, {{"OMP_NUM_THREADS", "5"}}).threads, 0);
}

TEST(PlaceRanks, FindsItsPlaceAmongNodes) {
  const Variables node = {{"NODE_RANK", "1"}, {"MASTER_ADDR", "first"}, {"MASTER_PORT", "29500"}, {"WORLD_SIZE", "6"}};
  const Placement placement = placed({.devices = 3}, node);
  EXPECT_EQ(placement.nodes, 2);
  EXPECT_EQ(placement.rank(2), 5);
  EXPECT_EQ(placement.world_size(), 6);
  EXPECT_EQ(placement.master_address, "first");
  EXPECT_EQ(placement.master_port, 29500);
  EXPECT_FALSE(placement.uses_agent_store);
  Variables counted = node;
  counted.erase("WORLD_SIZE");
  EXPECT_EQ(placed({.devices = 3, .num_nodes = 4}, counted).world_size(), 12);
  EXPECT_NE(refusal<BadEnvironment>({.devices = 3}, counted), "");
  EXPECT_EQ(refusal<BadEnvironment>({.devices = 4}, node),
            "environment variable 'WORLD_SIZE' is 6, not a multiple of the 4 devices of a node");
  EXPECT_EQ(refusal<BadEnvironment>({.devices = 3, .num_nodes = 1}, node),
            "environment variable 'NODE_RANK' is '1', not between 0 and 0");
  EXPECT_NE(refusal<BadEnvironment>({.num_nodes = 2}), "");
}

TEST(PlaceRanks, IsOneProcessANodeBelowTheLauncher) {
  const Variables launched = {{"RANK", "1"},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_RANK", "0"},
                              {"LOCAL_WORLD_SIZE", "1"},
                              {"GROUP_RANK", "1"},
                              {"GROUP_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "first"},
                              {"MASTER_PORT", "29500"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"TORCHELASTIC_RESTART_COUNT", "1"},
                              {"LRUN_RUN_ID", "run"},
                              {"LRUN_DEVICES", "cpu,cpu"},
                              {"LRUN_STRATEGY", "ddp_spawn"}};
  const Placement placement = placed({}, launched);
  EXPECT_EQ(placement.method, LaunchMethod::kSpawn);
  EXPECT_EQ(placement.world_size(), 4);
  EXPECT_EQ(placement.rank(1), 3);
  EXPECT_TRUE(placement.uses_agent_store);
  EXPECT_EQ(placement.run_id, "run");
  EXPECT_EQ(placement.restart_count, 1);
}

TEST(PlaceRanks, StaysInTheProcessThatIsARankAlready) {
  const Variables launched = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}};
  for (const std::string strategy : {"", "ddp", "ddp2"}) {
    Variables variables = launched;
    if (!strategy.empty()) variables["LRUN_STRATEGY"] = strategy;
    EXPECT_EQ(placed(with_strategy("ddp_spawn"), variables).method, LaunchMethod::kInPlace) << strategy;
  }
}

TEST(RankVariables, AreThoseOfTheContract) {
  Placement placement =
      placed({.devices = 2, .backend = "shm", .seed = 7},
             {{"NODE_RANK", "1"}, {"MASTER_ADDR", "first"}, {"MASTER_PORT", "1"}, {"WORLD_SIZE", "4"}});
  const auto list = rank_variables(placement, 1, 29500);
  const std::map<std::string, std::string> variables(list.begin(), list.end());
  const std::map<std::string, std::string> expected = {{"RANK", "3"},
                                                       {"WORLD_SIZE", "4"},
                                                       {"LOCAL_RANK", "1"},
                                                       {"LOCAL_WORLD_SIZE", "2"},
                                                       {"NODE_RANK", "1"},
                                                       {"GROUP_RANK", "1"},
                                                       {"GROUP_WORLD_SIZE", "2"},
                                                       {"ROLE_NAME", "default"},
                                                       {"ROLE_RANK", "3"},
                                                       {"ROLE_WORLD_SIZE", "4"},
                                                       {"MASTER_ADDR", "first"},
                                                       {"MASTER_PORT", "29500"},
                                                       {"TORCHELASTIC_RUN_ID", "launch"},
                                                       {"TORCHELASTIC_RESTART_COUNT", "0"},
                                                       {"TORCHELASTIC_MAX_RESTARTS", "0"},
                                                       {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                                       {"LRUN_STRATEGY", "ddp"},
                                                       {"LRUN_DEVICES", "cpu"},
                                                       {"LRUN_PROCESS_GROUP_BACKEND", "shm"},
                                                       {"LRUN_SEED", "7"},
                                                       {"OMP_NUM_THREADS", "4"}};
  EXPECT_EQ(variables, expected);
}

}  // namespace
}  // namespace lrun::detail
