#include "verdict/core_file.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(CoreFile, IsNamedByTheKernelsPattern) {
  EXPECT_EQ(core_file_pattern("core", false, 42, 11, "/job"), "/job/core");
  EXPECT_EQ(core_file_pattern("core", true, 42, 11, "/job"), "/job/core.42");
  EXPECT_EQ(core_file_pattern("core.%p", true, 42, 11, "/job"), "/job/core.42");
  EXPECT_EQ(core_file_pattern("/var/core/%e.%p.%s.%t%%", false, 42, 11, "/job"), "/var/core/*.42.11.*%");
}

TEST(CoreFile, NamesWithGlobbingCharactersStandForThemselves) {
  EXPECT_EQ(core_file_pattern("core[*]", false, 1, 6, "/a?b"), "/a\\?b/core\\[\\*\\]");
}

}  // namespace
}  // namespace lrun
