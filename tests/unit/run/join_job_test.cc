#include "run/join_job.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

TEST(JobSecret, IsWarnedAboutWhereItIsMissingOrFoundByTrying) {
  EXPECT_TRUE(weak_secret_warning("", "h1:15599").starts_with("anyone who can reach h1:15599 can take part"));
  EXPECT_TRUE(weak_secret_warning("hush", "h1:15599").starts_with("LRUN_JOB_SECRET is short: "));
  EXPECT_EQ(weak_secret_warning(std::string(16, 'x'), "h1:15599"), "");
}

}  // namespace
}  // namespace lrun::launcher
