#include "lrun/batch_size.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lrun::detail {
namespace {

TEST(EffectiveBatchSize, IsThatOfTheStrategy) {
  for (const char* strategy : {"ddp", "ddp_spawn", "ddp_fork", "ddp_notebook", "ddp_sharded", "horovod", "deepspeed"}) {
    EXPECT_EQ(effective_batch_size(strategy, 7, 8, 1), 56) << strategy;
    EXPECT_EQ(effective_batch_size(strategy, 7, 8, 10), 560) << strategy;
  }
  EXPECT_EQ(effective_batch_size("ddp2", 7, 8, 1), 7);
  EXPECT_EQ(effective_batch_size("ddp2", 7, 8, 10), 70);
  EXPECT_EQ(effective_batch_size("dp", 7, 8, 1), 7);
  EXPECT_EQ(effective_batch_size("single", 7, 1), 7);
  EXPECT_EQ(effective_batch_size("ddp", 7, 8, 1, 3), 168) << "gradients of three batches are accumulated";
}

TEST(EffectiveBatchSize, IsRefusedWhereThereIsNone) {
  EXPECT_THROW((void)effective_batch_size("dp", 7, 8, 10), std::invalid_argument);
  EXPECT_THROW((void)effective_batch_size("single", 7, 8), std::invalid_argument);
  EXPECT_THROW((void)effective_batch_size("dpp", 7, 8), std::invalid_argument);
  EXPECT_THROW((void)effective_batch_size("ddp", 0, 8), std::invalid_argument);
  EXPECT_THROW((void)effective_batch_size("ddp", 7, 0), std::invalid_argument);
}

TEST(LearningRate, FollowsTheBatch) {
  EXPECT_DOUBLE_EQ(linear_learning_rate(1e-3, 7, 56), 8e-3);
  EXPECT_DOUBLE_EQ(linear_learning_rate(1e-3, 7, 560), 8e-2);
  EXPECT_NEAR(square_root_learning_rate(1e-3, 7, 56), 2.83e-3, 1e-5);
  EXPECT_NEAR(square_root_learning_rate(1e-3, 7, 560), 8.94e-3, 1e-5);
  EXPECT_DOUBLE_EQ(linear_learning_rate(0.1, 64, 64), 0.1);
  EXPECT_THROW((void)linear_learning_rate(1e-3, 0, 56), std::invalid_argument);
}

}  // namespace
}  // namespace lrun::detail
