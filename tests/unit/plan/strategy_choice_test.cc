#include "plan/strategy_choice.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun {
namespace {

TEST(ChooseStrategy, IsDdpForMoreThanOneDeviceOrNode) {
  EXPECT_EQ(choose_strategy({}, 1, 1).value, "single");
  EXPECT_EQ(choose_strategy({}, 2, 1).value, "ddp");
  EXPECT_EQ(choose_strategy({}, 1, 2).value, "ddp");
  EXPECT_FALSE(choose_strategy({}, 2, 1).given());
}

TEST(ChooseStrategy, KeepsWhatWasAskedAndWhoAsked) {
  for (const char* name :
       {"ddp", "dp", "ddp2", "ddp_sharded", "ddp_spawn", "ddp_fork", "ddp_notebook", "deepspeed", "horovod", "tpu"}) {
    EXPECT_EQ(choose_strategy(flag("--strategy", name), 1, 1), flag("--strategy", name));
  }
}

TEST(ChooseStrategy, RefusesLaterOnesUnknownOnesAndSingleForSeveral) {
  EXPECT_EQ(refusal_of([] { choose_strategy(flag("--strategy", "fsdp"), 2, 1); }),
            "strategy 'fsdp' is not in this version of lrun | use '--strategy ddp'");
  EXPECT_EQ(refusal_of([] { choose_strategy(flag("--strategy", "dpp"), 2, 1); }),
            "unknown strategy 'dpp' | did you mean 'ddp'?");
  EXPECT_EQ(
      refusal_of([] { choose_strategy(flag("--strategy", "mystery"), 2, 1); }),
      "unknown strategy 'mystery' | use ddp, dp, ddp2, ddp_sharded, ddp_spawn, ddp_fork, ddp_notebook, deepspeed, "
      "horovod, tpu or single");
  EXPECT_NE(refusal_of([] { choose_strategy(flag("--strategy", "single"), 2, 1); }), "");
  EXPECT_EQ(choose_strategy(flag("--strategy", "single"), 1, 1).value, "single");
}

}  // namespace
}  // namespace lrun
