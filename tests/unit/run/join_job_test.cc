#include "run/join_job.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

TEST(JobSecret, IsWarnedAboutWhereItIsMissingOrFoundByTrying) {
  EXPECT_TRUE(warning_of_strangers("").starts_with("whoever reaches this port can take part"));
  EXPECT_TRUE(warning_of_strangers("hush").starts_with("LRUN_JOB_SECRET is short: "));
  EXPECT_EQ(warning_of_strangers(std::string(16, 'x')), "");
}

}  // namespace
}  // namespace lrun::launcher
