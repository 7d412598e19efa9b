#include "report/watched_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

RunStatus watched_run(int ranks) {
  RunStatus status{.run_id = "20260102-030405-abcdef",
                   .pid = 100,
                   .running_ms = 5000,
                   .argv = {"./train"},
                   .strategy = "ddp",
                   .world_size = ranks,
                   .phase = "running"};
  for (int rank = 0; rank < ranks; ++rank) {
    status.workers.push_back({.rank = rank, .last_line = "step " + std::to_string(rank)});
  }
  return status;
}

/// Lines that are no numbers apart.
RunStatus talk_of(int ranks) {
  RunStatus status = watched_run(ranks);
  for (WorkerStatus& worker : status.workers)
    worker.last_line = std::string(static_cast<std::size_t>(worker.rank), 'x');
  return status;
}

TEST(WatchedLines, AreALineForEachRankWhereThatFits) {
  const auto lines = watched_lines({watched_run(4)}, {}, 0, {.columns = 80, .rows = 7});
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_THAT(lines[0], StartsWith("run 20260102-030405-abcdef (pid 100): running for 5.0s, "));
  EXPECT_EQ(lines[1], "  RANK  STATE    LAST LINE");
  EXPECT_EQ(lines[5], "  3     running  step 3");
}

TEST(WatchedLines, FoldRanksWhereTheyDoNotFit) {
  const auto lines = watched_lines({watched_run(64)}, {}, 0, {.columns = 80, .rows = 24});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[2], "  0-63  running  step 0");
}

TEST(WatchedLines, CutOffWhatIsTooMuch) {
  const auto lines = watched_lines({talk_of(64)}, {}, 0, {.columns = 80, .rows = 24});
  ASSERT_EQ(lines.size(), 23U);
  EXPECT_EQ(lines[21], "  19    running  " + std::string(19, 'x'));
  EXPECT_EQ(lines[22], "  and 44 more");
}

TEST(WatchedLines, AreNotWiderThanTheTerminal) {
  for (const std::string& line : watched_lines({talk_of(64)}, {}, 0, {.columns = 20, .rows = 100})) {
    EXPECT_LE(line.size(), 20 - 1 + std::string_view("…\x1b[0m").size()) << line;
  }
}

TEST(WatchedLines, GiveEachRunItsShare) {
  const auto lines =
      watched_lines({talk_of(64), talk_of(64), watched_run(1)}, {"a remark"}, 0, {.columns = 80, .rows = 24});
  ASSERT_LE(lines.size(), 23U);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "  and 61 more"), 2);
  EXPECT_EQ(lines.back(), "a remark");
  EXPECT_EQ(lines[lines.size() - 2], "  0     running  step 0");
}

TEST(WatchedLines, FitTheSmallestTerminal) {
  EXPECT_THAT(watched_lines({watched_run(4), watched_run(4)}, {"a", "b"}, 0, {.columns = 80, .rows = 2}),
              ElementsAre("  and 9 more"));
  EXPECT_THAT(watched_lines({}, {"a remark"}, 0, {.columns = 80, .rows = 2}), ElementsAre("a remark"));
}

constexpr ConsoleDescriptor::Size kSize{.columns = 80, .rows = 24};

TEST(WatchedScreen, DrawsItsLinesAgainInTheirPlace) {
  WatchedScreen screen;
  EXPECT_EQ(screen.draw("", {"a", "b"}, kSize), "\x1b[?7la\x1b[K\nb\x1b[K\n\x1b[?7h\x1b[J");
  EXPECT_EQ(screen.draw("", {"c"}, kSize), "\r\x1b[2A\x1b[?7lc\x1b[K\n\x1b[?7h\x1b[J");
  EXPECT_THAT(screen.draw("", {"d"}, kSize), StartsWith("\r\x1b[1A"));
}

TEST(WatchedScreen, WhatStandsAboveStays) {
  WatchedScreen screen;
  screen.draw("", {"a", "b"}, kSize);
  EXPECT_EQ(screen.draw("ended\n", {"c"}, kSize), "\r\x1b[2A\x1b[Jended\n\x1b[?7lc\x1b[K\n\x1b[?7h\x1b[J");
  EXPECT_THAT(screen.draw("", {"d"}, kSize), StartsWith("\r\x1b[1A"));
}

TEST(WatchedScreen, ATerminalOfAnotherSizeIsCleared) {
  WatchedScreen screen;
  screen.draw("", {"a"}, kSize);
  EXPECT_THAT(screen.draw("", {"a"}, {.columns = 60, .rows = 24}), StartsWith("\x1b[H\x1b[2J"));
}

}  // namespace
}  // namespace lrun::launcher
