#include "process/storage_space.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(StorageSpace, IsFullWhenLessThanAHundredthIsLeft) {
  EXPECT_TRUE((StorageSpace{64 << 20, 0}.full()));
  EXPECT_FALSE((StorageSpace{64 << 20, 1 << 20}.full()));
  EXPECT_FALSE((StorageSpace{0, 0}.full())) << "a file system without a size";
  EXPECT_EQ(storage_space("/nonexistent"), std::nullopt);
  ASSERT_TRUE(storage_space("/"));
  EXPECT_GT(storage_space("/")->total_bytes, 0U);
}

}  // namespace
}  // namespace lrun
