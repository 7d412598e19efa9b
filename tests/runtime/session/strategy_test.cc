#include "runtime/session/strategy.h"

#include <gtest/gtest.h>
#include <lrun/error.h>

#include <stdexcept>

#include "runtime/session/banner.h"

namespace lrun::detail {
namespace {

World world_of(int size, std::string strategy = "") {
  World world;
  world.world_size = size;
  world.strategy = std::move(strategy);
  return world;
}

std::string refusal(const std::string& asked, const World& world) {
  try {
    return "accepted as " + choose_strategy(asked, world);
  } catch (const Unsupported& error) {
    return error.what();
  }
}

TEST(Strategy, IsDdpUnlessSomebodySaysOtherwise) {
  EXPECT_EQ(choose_strategy("", world_of(1)), "ddp");
  EXPECT_EQ(choose_strategy("", world_of(4, "ddp")), "ddp");
  EXPECT_EQ(choose_strategy("ddp", world_of(4, "ddp2")), "ddp") << "the program decides";
  EXPECT_EQ(choose_strategy("", world_of(1, "single")), "single");
  EXPECT_EQ(choose_strategy("", world_of(4, "ddp_sharded")), "ddp_sharded");
  EXPECT_EQ(choose_strategy("", world_of(1, "dp"), 4), "dp");
  EXPECT_EQ(choose_strategy("", world_of(4, "ddp2"), 4), "ddp2");
  EXPECT_EQ(choose_strategy("", world_of(4, "horovod")), "horovod");
}

TEST(Strategy, OfAnotherLibraryIsForItsPrograms) {
  EXPECT_EQ(refusal("", world_of(2, "deepspeed")),
            "strategy 'deepspeed' is for programs written for DeepSpeed: use 'ddp_sharded' or 'ddp'");
  EXPECT_EQ(refusal("", world_of(2, "tpu")), "strategy 'tpu' is for programs written for torch_xla: use 'ddp'");
  EXPECT_THROW(register_strategy("deepspeed", [](const StrategyContext&) { return nullptr; }), std::invalid_argument);
}

TEST(Strategy, ThatStartsRanksFromWithinIsForLaunch) {
  for (const std::string name : {"ddp_spawn", "ddp_fork", "ddp_notebook"}) {
    EXPECT_EQ(refusal("", world_of(1, name)),
              "strategy '" + name +
                  "' is for programs that start their ranks by lrun::launch(), and this session is not in a function "
                  "that it runs: use 'ddp'");
  }
}

TEST(Strategy, ThatIsMisspeltIsRefusedWithTheNearest) {
  EXPECT_EQ(refusal("dpd", world_of(2)), "'dpd' is not a strategy: did you mean 'ddp'?");
  EXPECT_EQ(refusal("quantum", world_of(2)),
            "'quantum' is not a strategy: there is ddp, dp, ddp2, ddp_sharded, horovod and single");
}

TEST(Strategy, OfYourOwnIsKnownByItsName) {
  const StrategyMaker maker = [](const StrategyContext&) { return nullptr; };
  register_strategy("own", maker);
  EXPECT_EQ(choose_strategy("own", world_of(3)), "own");
  EXPECT_TRUE(registered_strategy("own"));
  EXPECT_FALSE(registered_strategy("ddp"));
  for (const std::string name : {"own", "ddp", "horovod", "tpu", ""}) {
    EXPECT_THROW(register_strategy(name, maker), std::invalid_argument) << name;
  }
  EXPECT_THROW(register_strategy("nothing", nullptr), std::invalid_argument);
}

TEST(Strategy, SingleIsForOneRank) {
  EXPECT_EQ(refusal("", world_of(2, "single")), "strategy 'single' is for one rank, and there are 2: use 'ddp'");
}

TEST(Banner, SaysWhatWasJoined) {
  World world = world_of(8);
  world.nodes = 2;
  EXPECT_EQ(describe_session(world, "ddp", "shm", {"cpu"}, 5),
            "lrun: ddp over shm, 8 ranks on 2 nodes, device cpu, seed 5");
  EXPECT_EQ(describe_session(world_of(1), "dp", "single", {"cpu", "cpu"}, 5),
            "lrun: dp, 1 rank on 1 node, devices cpu, cpu, seed 5");
}

TEST(Banner, SaysWhatTheBatchMeansForTheLearningRate) {
  EXPECT_EQ(describe_batch_size(7, 80),
            "lrun: effective batch size 560 (7 samples x 80 ranks); scale a learning rate tuned for batch 7 by 80 "
            "(linear, with warm-up) or 8.94 (square root, for Adam)");
  EXPECT_EQ(describe_batch_size(7, 10, 2),
            "lrun: effective batch size 70 (7 samples x 10 ranks, at most 4 on each of 2 devices); scale a learning "
            "rate tuned for batch 7 by 10 (linear, with warm-up) or 3.16 (square root, for Adam)");
  EXPECT_EQ(
      describe_batch_size(7, 1, 8),
      "lrun: effective batch size 7, at most 1 on each of 8 devices; a learning rate tuned for batch 7 stays as it is");
}

}  // namespace
}  // namespace lrun::detail
