#include "plan/strategy.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(Strategy, IsFoundByItsName) {
  for (const char* name :
       {"ddp", "dp", "ddp2", "ddp_sharded", "ddp_spawn", "ddp_fork", "ddp_notebook", "deepspeed", "horovod", "tpu"}) {
    EXPECT_EQ(text_of(find_strategy(name).value()), name);
  }
  EXPECT_EQ(find_strategy("single"), std::nullopt) << "nobody asks for it";
  EXPECT_EQ(find_strategy("fsdp"), std::nullopt);
}

TEST(Strategy, HasItsFacts) {
  EXPECT_EQ(facts_of(Strategy::kDp).processes, StrategyFacts::Processes::kOneInAll);
  EXPECT_EQ(facts_of(Strategy::kDdp2).processes, StrategyFacts::Processes::kOnePerNode);
  EXPECT_TRUE(facts_of(Strategy::kDdpSharded).needs_liblrun());
  EXPECT_FALSE(facts_of(Strategy::kDdp).needs_liblrun());
  EXPECT_TRUE(facts_of(Strategy::kDdpNotebook).starts_ranks_from_code);
  EXPECT_FALSE(facts_of(Strategy::kDdp2).starts_ranks_from_code);
}

}  // namespace
}  // namespace lrun::launcher
