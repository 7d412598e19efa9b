#include "plan/rank_streams.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

/// 'oe', 'o-', '-e' or '--' for a local rank.
std::string streams_of(const std::string& text, int local_rank) {
  const auto streams = parse_rank_streams(text);
  if (!streams) return "unreadable";
  return std::string(streams->has(local_rank, LogStream::kOut) ? "o" : "-") +
         (streams->has(local_rank, LogStream::kErr) ? "e" : "-");
}

TEST(RankStreams, OneDigitIsForAllRanks) {
  EXPECT_EQ(streams_of("0", 5), "--");
  EXPECT_EQ(streams_of("1", 5), "o-");
  EXPECT_EQ(streams_of("2", 5), "-e");
  EXPECT_EQ(streams_of("3", 5), "oe");
}

TEST(RankStreams, AMapIsForTheRanksInIt) {
  EXPECT_EQ(streams_of("0:1,1:2,12:3", 0), "o-");
  EXPECT_EQ(streams_of("0:1,1:2,12:3", 1), "-e");
  EXPECT_EQ(streams_of("0:1,1:2,12:3", 2), "--");
  EXPECT_EQ(streams_of("0:1,1:2,12:3", 12), "oe") << "ranks of two digits, which torchrun cannot name";
  EXPECT_EQ(streams_of("1:3,1:0", 1), "--") << "the last entry counts";
}

TEST(RankStreams, AnythingElseIsUnreadable) {
  for (const char* const text : {"", "4", "-1", "33", "all", "0:4", "0:", ":1", "0:1,", ",0:1", "0:1;1:2", "-1:3", " 1",
                                 "0 :1", "99999999999:1"}) {
    EXPECT_EQ(streams_of(text, 0), "unreadable") << '\'' << text << '\'';
  }
}

}  // namespace
}  // namespace lrun::launcher
