#include <gtest/gtest.h>
#include <lrun/version.h>

#include "lrun_version.h"

namespace lrun {
namespace {

TEST(Version, IsTheOneOfTheProject) { EXPECT_STREQ(version(), LRUN_VERSION); }

}  // namespace
}  // namespace lrun
