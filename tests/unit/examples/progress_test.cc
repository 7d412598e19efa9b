#include "progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>

namespace fashion_mnist {
namespace {

TEST(Progress, FillsTheBar) {
  EXPECT_EQ(bar_text(1, 0, 10, 2.5, 10), "epoch 1 [>         ]   0 %  loss 2.5000");
  EXPECT_EQ(bar_text(2, 5, 10, 0.25, 10), "epoch 2 [=====>    ]  50 %  loss 0.2500");
  EXPECT_EQ(bar_text(3, 10, 10, 0, 10), "epoch 3 [==========] 100 %  loss 0.0000");
}

TEST(Progress, AlignsTheTable) {
  EXPECT_EQ(table_header(), "epoch  train loss  test accuracy  images/s");
  EXPECT_EQ(table_row({.epoch = 12, .loss = 0.51234, .accuracy = 0.8765, .images_per_s = 9876.5}),
            "   12      0.5123        87.65 %      9876");
  EXPECT_EQ(table_row({}).size(), table_header().size());
  EXPECT_EQ(final_line(0.90125), "final test accuracy: 90.12 %");
}

TEST(Progress, IsSilentWhereThereIsNoTerminal) {
  std::FILE* stream = std::tmpfile();
  ASSERT_NE(stream, nullptr);
  ProgressBar bar(stream, true);
  bar.show(1, 1, 2, 0.5);
  bar.clear();
  EXPECT_EQ(std::ftell(stream), 0);
  std::fclose(stream);
}

}  // namespace
}  // namespace fashion_mnist
