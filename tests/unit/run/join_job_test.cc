#include "run/join_job.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

TEST(JobSecret, IsWarnedAboutWhereItIsMissingOrFoundByTrying) {
  EXPECT_TRUE(weak_secret_warning("").starts_with("anyone who can reach this port can take part"));
  EXPECT_TRUE(weak_secret_warning("hush").starts_with("LRUN_JOB_SECRET is short: "));
  EXPECT_EQ(weak_secret_warning(std::string(16, 'x')), "");
}

}  // namespace
}  // namespace lrun::launcher
