#include "base/bytes_text.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(BytesText, HasOneDecimalAtMost) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(64ULL << 20), "64 MiB");
  EXPECT_EQ(bytes_text(3ULL << 29), "1.5 GiB");
  EXPECT_EQ(bytes_text(~0ULL), "16777216 TiB");
}

TEST(BytesText, ReadsKibAsSo) { EXPECT_EQ(kib_text(1536), "1.5 MiB"); }

}  // namespace
}  // namespace lrun
