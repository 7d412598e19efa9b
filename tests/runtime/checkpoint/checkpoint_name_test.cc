#include "runtime/checkpoint/checkpoint_name.h"

#include <gtest/gtest.h>

namespace lrun::detail {
namespace {

TEST(CheckpointName, IsReadAsItIsSpelt) {
  EXPECT_EQ(spell({CheckpointKind::kWhole, 100, 0, 0}), "step-000000000100.ckpt");
  EXPECT_EQ(spell({CheckpointKind::kPart, 100, 3, 8}), "step-000000000100.part-3-of-8.ckpt");
  EXPECT_EQ(spell({CheckpointKind::kManifest, 12345678901234, 0, 0}), "step-12345678901234.manifest.ckpt");
  for (const CheckpointName& name :
       {CheckpointName{CheckpointKind::kWhole, 0, 0, 0}, CheckpointName{CheckpointKind::kPart, 5, 0, 1},
        CheckpointName{CheckpointKind::kManifest, 0xFFFFFFFFFFFFFFFF, 0, 0}}) {
    EXPECT_EQ(parse_checkpoint_name(spell(name)), name) << spell(name);
  }
}

TEST(CheckpointName, IsNothingElse) {
  for (const char* text : {"", "step-.ckpt", "step-7.ckpt", "step-000000000100.ckpt.tmp", "step-000000000100",
                           "step-000000000100.part-8-of-8.ckpt", "step-000000000100.part-03-of-8.ckpt",
                           "step-000000000100.part--1-of-8.ckpt", "step-99999999999999999999.ckpt", "last.ckpt"}) {
    EXPECT_EQ(parse_checkpoint_name(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lrun::detail
