#include "logs/line_folder.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime kStart{};

/// '[0-2] text' for each line; '+' in front where the text was shown before.
std::string text_of(const std::vector<LineFolder::Output>& outputs) {
  std::string text;
  for (const LineFolder::Output& output : outputs) {
    text += (output.again ? "+[" : "[") + rank_ranges(output.ranks) + "] " + output.text;
  }
  return text;
}

TEST(LineFolder, CopiesThatCameTogetherAreOneLine) {
  LineFolder folder(250ms);
  for (const int rank : {3, 0, 1, 2}) folder.take(rank, "hello\n");
  EXPECT_EQ(text_of(folder.show(kStart)), "[0-3] hello\n");
  EXPECT_FALSE(folder.next()) << "nothing is held back";
}

TEST(LineFolder, TheFirstCopyNeverWaitsAndLaterOnesFollowTogether) {
  LineFolder folder(250ms);
  folder.take(2, "hello\n");
  EXPECT_EQ(text_of(folder.show(kStart)), "[2] hello\n");
  folder.take(0, "hello\n");
  EXPECT_EQ(text_of(folder.show(kStart + 1ms)), "");
  folder.take(1, "hello\n");
  EXPECT_EQ(folder.next(), kStart + 250ms) << "the window begins with the first copy";
  EXPECT_EQ(text_of(folder.show(kStart + 249ms)), "");
  EXPECT_EQ(text_of(folder.show(kStart + 250ms)), "+[0,1] hello\n");
  EXPECT_FALSE(folder.next());
}

TEST(LineFolder, WhereNobodyWatchesTheFirstCopyWaitsForTheOthers) {
  LineFolder folder(250ms, true);
  folder.take(0, "step\n");
  folder.take(0, "mine 0\n");
  EXPECT_EQ(text_of(folder.show(kStart)), "");
  folder.take(1, "step\n");
  folder.take(1, "mine 1\n");
  EXPECT_EQ(text_of(folder.show(kStart + 249ms)), "");
  EXPECT_EQ(folder.next(), kStart + 250ms);
  EXPECT_EQ(text_of(folder.show(kStart + 250ms)), "[0,1] step\n[0] mine 0\n");
  EXPECT_EQ(text_of(folder.show_all()), "[1] mine 1\n");
}

TEST(LineFolder, AfterTheWindowALineIsNew) {
  LineFolder folder(250ms);
  folder.take(0, "hello\n");
  (void)folder.show(kStart);
  (void)folder.show(kStart + 250ms);
  folder.take(1, "hello\n");
  EXPECT_EQ(text_of(folder.show(kStart + 250ms)), "[1] hello\n");
}

TEST(LineFolder, TheSecondCopiesOfAllRanksAreFoldedWithEachOther) {
  LineFolder folder(250ms);
  for (const int rank : {0, 1}) {
    for (int i = 0; i < 3; ++i) folder.take(rank, "step\n");
  }
  folder.take(1, "step\n");
  EXPECT_EQ(text_of(folder.show(kStart)), "[0,1] step\n[0,1] step\n[0,1] step\n[1] step\n");
}

TEST(LineFolder, LinesKeepTheOrderOfTheirFirstCopies) {
  LineFolder folder(250ms);
  folder.take(0, "a\n");
  folder.take(0, "b\n");
  folder.take(1, "x\n");
  folder.take(1, "b\n");
  folder.take(1, "a\n");
  EXPECT_EQ(text_of(folder.show(kStart)), "[0,1] a\n[0,1] b\n[1] x\n");
}

TEST(LineFolder, ShowsWhatIsHeldAtTheEnd) {
  LineFolder folder(250ms);
  folder.take(0, "a\n");
  (void)folder.show(kStart);
  folder.take(1, "a\n");
  folder.take(1, "b\n");
  EXPECT_EQ(text_of(folder.show_all()), "+[1] a\n[1] b\n");
  EXPECT_EQ(text_of(folder.show_all()), "");
}

TEST(LineFolder, LosesNoCopyWhenItsMemoryIsFull) {
  LineFolder folder(250ms);
  std::size_t shown = 0;
  const auto count = [&](const std::vector<LineFolder::Output>& outputs) {
    for (const LineFolder::Output& output : outputs) shown += output.ranks.size();
  };
  for (std::size_t i = 0; i < 3 * LineFolder::kMostLines; ++i) {
    for (const int rank : {0, 1, 2}) folder.take(rank, std::to_string(i / 2) + "\n");
    if (i % 100 == 0) count(folder.show(kStart));
  }
  count(folder.show_all());
  EXPECT_EQ(shown, 9 * LineFolder::kMostLines);
}

TEST(LineFolder, SaysWhenItsMemoryIsFull) {
  LineFolder folder(250ms);
  std::size_t lines = 0;
  while (!folder.full() && lines < 100'000) folder.take(0, std::to_string(lines++) + "\n");
  EXPECT_EQ(lines, 2 * LineFolder::kMostLines + 1);
  EXPECT_EQ(folder.show(kStart).size(), lines);
  EXPECT_FALSE(folder.full());
}

TEST(RankRanges, AreWrittenShort) {
  EXPECT_EQ(rank_ranges({5}), "5");
  EXPECT_EQ(rank_ranges({0, 1}), "0,1");
  EXPECT_EQ(rank_ranges({0, 1, 2, 3, 7, 9, 10}), "0-3,7,9,10");
}

}  // namespace
}  // namespace lrun::launcher
