#include "plan/run_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lrun::launcher {
namespace {

TEST(RunId, IsUniqueAndSortsByTime) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(make_run_id());
  EXPECT_EQ(ids.size(), 1000U);
  for (const std::string& id : ids) EXPECT_TRUE(is_run_id(id)) << id;
}

TEST(RunId, IsNoOtherName) {
  EXPECT_TRUE(is_run_id("20261121-204530-x7k2q9"));
  for (const char* const other : {"", "..", "resnet", "20261121-204530-x7k2q", "20261121-204530-X7k2q9",
                                  "20261121_204530-x7k2q9", "20261121-20453a-x7k2q9", "../../../20261121/etc/"}) {
    EXPECT_FALSE(is_run_id(other)) << other;
  }
}

TEST(RunId, HasTheSecondInWhichItWasMade) {
  EXPECT_EQ(time_of_run_id("20261121-204530-x7k2q9"), 1'795'293'930'000);
  EXPECT_EQ(time_of_run_id("20261321-204530-x7k2q9"), 0) << "there is no such month";
  EXPECT_EQ(time_of_run_id("resnet"), 0);
}

}  // namespace
}  // namespace lrun::launcher
