#include "base/duration.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, ReadsABareNumberAsSeconds) { EXPECT_EQ(parse_duration("30"), Duration(30s)); }

TEST(ParseDuration, ReadsEveryUnitAndFractions) {
  EXPECT_EQ(parse_duration("250ms"), Duration(250ms));
  EXPECT_EQ(parse_duration("1.5m"), Duration(90s));
  EXPECT_EQ(parse_duration("5min"), Duration(300s));
  EXPECT_EQ(parse_duration("2h"), Duration(2h));
  EXPECT_EQ(parse_duration("1d"), Duration(24h));
  EXPECT_EQ(parse_duration("0"), Duration(0s));
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "s", "-1", "3x", "1e3", "10 s", "inf", "99999d"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(FormatDuration, IsReadBackAsTheSameDuration) {
  for (const Duration duration :
       {Duration(0), Duration(250), Duration(30s), Duration(90s), Duration(5min), Duration(2h)}) {
    EXPECT_EQ(parse_duration(format_duration(duration)), duration) << format_duration(duration);
  }
}

TEST(FormatElapsed, GrowsCoarserWithTime) {
  EXPECT_EQ(format_elapsed(Duration(412)), "0.4s");
  EXPECT_EQ(format_elapsed(Duration(872s)), "14m32s");
  EXPECT_EQ(format_elapsed(Duration(11'100s)), "3h05m");
}

}  // namespace
}  // namespace lrun
