#include "inspect/python_lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace lrun::launcher {
namespace {

constexpr int kNone = -1;

/// Where the bytes of code of another line begin.
struct LineBegin {
  int offset;
  int line;
};

// The tables are those that CPython made for this function, whose first line is 2, and the lines are those that it
// told:
//
//   def f(n):                      # 2
//       total = 0
//       for i in range(n):
//
//           total += i
//           if total > 9: continue
//           try:
//               g(
//                 total,
//                 i)
//           except ValueError:
//               pass
//       return [
//         x for x in range(3)]     # 15
void expect_lines(int minor, const std::vector<unsigned char>& table, const std::vector<LineBegin>& begins) {
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    for (int offset = begins[i].offset; offset < begins[i + 1].offset; offset += 2) {
      EXPECT_EQ(python_line(minor, table, 2, offset).value_or(kNone), begins[i].line) << "3." << minor << " " << offset;
    }
  }
  EXPECT_EQ(python_line(minor, table, 2, -2), 2) << "it was just entered";
}

TEST(PythonLines, OfThreeNineAreInPairsOfBytesAndLines) {
  expect_lines(9, {0, 1, 4, 1, 12, 2, 8, 1, 10, 1, 2, 1, 2, 1, 2, 1, 2, 254, 8, 3, 12, 1, 8, 1, 6, 1, 6, 255},
               {{0, 3},
                {4, 4},
                {16, 6},
                {24, 7},
                {34, 8},
                {36, 9},
                {38, 10},
                {40, 11},
                {42, 9},
                {50, 12},
                {62, 13},
                {70, 14},
                {76, 15},
                {82, 14}});
}

TEST(PythonLines, OfThreeTenAreInPairsOfLinesAndBytes) {
  expect_lines(10, {4, 1, 12, 1, 8, 2, 10, 1, 2, 1, 2, 1, 2, 1, 2, 1, 8, 254, 12, 3, 4, 1, 2, 255, 6, 2, 6, 1, 6, 255},
               {{0, 3},
                {4, 4},
                {16, 6},
                {24, 7},
                {34, 8},
                {36, 9},
                {38, 10},
                {40, 11},
                {42, 9},
                {50, 12},
                {62, 13},
                {66, 12},
                {68, 14},
                {74, 15},
                {80, 14}});
}

TEST(PythonLines, OfThreeElevenAreInEntries) {
  expect_lines(11, {128, 0,   216, 12,  13,  128, 69,  221, 13,  18,  144, 49,  137, 88,  140, 88,  240, 0,   9,   5,
                    17,  240, 0,   9,   5,   17,  136, 1,   224, 8,   13,  144, 17,  137, 10,  136, 5,   216, 11,  16,
                    144, 49,  138, 57,  136, 57,  144, 104, 240, 2,   5,   9,   17,  221, 12,  13,  216, 14,  19,  216,
                    14,  15,  241, 5,   2,   13,  17,  244, 0,   2,   13,  17,  240, 0,   2,   13,  17,  240, 0,   2,
                    13,  17,  248, 245, 6,   0,   16,  26,  240, 0,   1,   9,   17,  240, 0,   1,   9,   17,  240, 0,
                    1,   9,   17,  216, 12,  16,  136, 68,  240, 3,   1,   9,   17,  248, 248, 248, 240, 4,   1,   12,
                    27,  240, 0,   1,   12,  27,  221, 17,  22,  144, 113, 145, 24,  148, 24,  240, 3,   1,   12,  27,
                    241, 0,   1,   12,  27,  244, 0,   1,   12,  27,  240, 0,   1,   5,   27},
               {{0, 2},
                {2, 3},
                {6, 4},
                {40, 6},
                {50, 7},
                {64, 8},
                {66, 9},
                {78, 10},
                {80, 11},
                {82, 9},
                {100, kNone},
                {102, 12},
                {120, 13},
                {124, 12},
                {126, kNone},
                {132, 14},
                {136, 15},
                {164, 14}});
}

TEST(PythonLines, OfThreeThirteenAreInEntries) {
  expect_lines(13, {128, 0,   216, 12,  13,  128, 69,  220, 13,  18,  144, 49,  142, 88,  136, 1,  224, 8,  13,
                    137, 10,  136, 5,   216, 11,  16,  144, 49,  139, 57,  145, 104, 240, 2,   5,  9,   17, 220,
                    12,  13,  216, 14,  19,  216, 14,  15,  246, 5,   2,   13,  17,  241, 11,  0,  14,  22, 244,
                    22,  0,   18,  23,  144, 113, 148, 24,  243, 3,   1,   12,  27,  217, 17,  25, 136, 65, 130,
                    97,  145, 24,  241, 3,   1,   12,  27,  240, 0,   1,   5,   27,  248, 244, 5,  0,   16, 26,
                    243, 0,   1,   9,   17,  218, 12,  16,  240, 3,   1,   9,   17,  252, 242, 4,  1,   12, 27},
               {{0, 2},    {2, 3},       {6, 4},    {34, 6},   {42, 7},   {58, 8},      {60, 9},
                {70, 10},  {72, 11},     {74, 9},   {88, 4},   {92, 15},  {114, 14},    {122, 15},
                {138, 14}, {144, kNone}, {146, 12}, {164, 13}, {170, 12}, {172, kNone}, {182, 14}});
}

TEST(PythonLines, OfAnyBytesAreSome) {
  std::vector<unsigned char> table;
  for (unsigned i = 0; i < 2000; ++i) table.push_back(static_cast<unsigned char>(i * i * 31 >> 3U));
  for (const int minor : {9, 10, 11, 15}) {
    for (const std::int64_t offset : {std::int64_t{0}, std::int64_t{100'000}, INT64_MAX}) {
      (void)python_line(minor, table, INT32_MAX, offset);
      (void)python_line(minor, {}, INT32_MIN, offset);
    }
  }
  const std::vector<unsigned char> far(500, 0x7f);
  EXPECT_LE(python_line(9, far, INT32_MAX, INT64_MAX), INT32_MAX);
}

}  // namespace
}  // namespace lrun::launcher
