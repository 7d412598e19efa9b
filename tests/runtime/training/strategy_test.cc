#include "runtime/strategy.h"

#include <gtest/gtest.h>
#include <lrun/error.h>

#include "runtime/banner.h"

namespace lrun {
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
  EXPECT_EQ(choose_strategy("ddp", world_of(4, "dp")), "ddp") << "the program decides";
  EXPECT_EQ(choose_strategy("", world_of(1, "single")), "single");
  EXPECT_EQ(choose_strategy("", world_of(4, "ddp_sharded")), "ddp_sharded");
}

TEST(Strategy, ThatComesLaterIsRefusedByName) {
  for (const std::string name : {"dp", "ddp2", "horovod", "deepspeed", "tpu"}) {
    EXPECT_EQ(refusal("", world_of(2, name)),
              "strategy '" + name + "' is not in this version of liblrun: it has 'ddp' and 'ddp_sharded'");
  }
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
  EXPECT_EQ(refusal("quantum", world_of(2)), "'quantum' is not a strategy: there are 'ddp' and 'ddp_sharded'");
}

TEST(Strategy, SingleIsForOneRank) {
  EXPECT_EQ(refusal("", world_of(2, "single")), "strategy 'single' is for one rank, and there are 2: use 'ddp'");
}

TEST(Banner, SaysWhatWasJoined) {
  World world = world_of(8);
  world.nodes = 2;
  EXPECT_EQ(describe_session(world, "ddp", "shm", "cpu", 5),
            "lrun: ddp over shm, 8 ranks on 2 nodes, device cpu, seed 5");
}

TEST(Banner, SaysWhatTheBatchMeansForTheLearningRate) {
  EXPECT_EQ(describe_batch_size(7, 80),
            "lrun: effective batch size 560 (7 samples x 80 ranks); a learning rate found with 7 in one process is to "
            "be multiplied by 80 (linear rule, with warm-up) or 8.94 (square root, for Adam and its like)");
}

}  // namespace
}  // namespace lrun
