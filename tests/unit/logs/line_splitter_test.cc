#include "logs/line_splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(LineSplitter& splitter, std::string_view bytes) {
  Pieces pieces;
  splitter.split(bytes, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

Pieces finish(LineSplitter& splitter) {
  Pieces pieces;
  splitter.finish([&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

TEST(LineSplitter, GivesEachLineWithItsNewline) {
  LineSplitter splitter;
  EXPECT_EQ(split(splitter, "one\n\ntwo\n"), (Pieces{"one\n", "\n", "two\n"}));
  EXPECT_EQ(splitter.held_bytes(), 0U);
}

TEST(LineSplitter, HoldsAnUnfinishedLineUntilItsRestArrives) {
  LineSplitter splitter;
  EXPECT_EQ(split(splitter, "be"), Pieces{});
  EXPECT_EQ(split(splitter, "gin"), Pieces{});
  EXPECT_EQ(split(splitter, "ning\nnext"), Pieces{"beginning\n"}) << "one piece";
  EXPECT_EQ(finish(splitter), Pieces{"next"});
  EXPECT_EQ(finish(splitter), Pieces{}) << "nothing is given twice";
}

TEST(LineSplitter, TakesCarriageReturnsAndZerosAsOrdinaryBytes) {
  LineSplitter splitter;
  const std::string bytes("10%\r20%\r\0\n", 10);
  EXPECT_EQ(split(splitter, bytes), Pieces{bytes});
}

TEST(LineSplitter, HoldsALineOfTheLimitAndPassesOnALongerOneAsItArrives) {
  LineSplitter splitter;
  const std::string longest(LineSplitter::kLongestHeld, 'x');
  EXPECT_EQ(split(splitter, longest), Pieces{});
  EXPECT_EQ(splitter.held_bytes(), longest.size());
  EXPECT_EQ(split(splitter, "y"), (Pieces{longest, "y"})) << "one byte too many: what was held goes on";
  EXPECT_EQ(splitter.held_bytes(), 0U);
  EXPECT_EQ(split(splitter, "z\n"), Pieces{"z\n"});
}

TEST(LineSplitter, DoesNotCopyALongLineTogether) {
  LineSplitter splitter;
  const std::string longest(LineSplitter::kLongestHeld, 'x');
  EXPECT_EQ(split(splitter, longest), Pieces{});
  EXPECT_EQ(split(splitter, "y\nz\n"), (Pieces{longest, "y\n", "z\n"}));
}

TEST(LineSplitter, NeverHoldsMoreThanTheLimitOfALineWithoutEnd) {
  LineSplitter splitter;
  std::size_t given = 0;
  const std::string chunk(10'000, 'x');
  for (int i = 0; i < 100; ++i) {
    for (const std::string& piece : split(splitter, chunk)) given += piece.size();
    ASSERT_LE(splitter.held_bytes(), LineSplitter::kLongestHeld);
  }
  for (const std::string& piece : finish(splitter)) given += piece.size();
  EXPECT_EQ(given, 1'000'000U);
}

}  // namespace
}  // namespace lrun::launcher
