#include <gtest/gtest.h>
#include <lrun/version.h>

#include "lrun_version.h"

namespace lrun::detail {
namespace {

TEST(Version, IsTheOneOfTheProject) { EXPECT_STREQ(version(), LRUN_VERSION); }

}  // namespace
}  // namespace lrun::detail
