#include "logs/tail_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "support/log_test_support.h"

namespace lrun::launcher {

std::ostream& operator<<(std::ostream& stream, const TailLine& line) {
  return stream << (line.stream == LogStream::kOut ? "out:" : "err:") << line.text;
}

namespace {

using Lines = std::vector<TailLine>;

TEST(TailBuffer, GivesTheLinesOfBothStreamsAsTheyArrived) {
  TailBuffer tail(1024);
  tail.append(kOut, "one\ntwo\n");
  tail.append(kErr, "warning\n");
  tail.append(kOut, "three\n");
  EXPECT_EQ(tail.lines(), (Lines{{kOut, "one"}, {kOut, "two"}, {kErr, "warning"}, {kOut, "three"}}));
}

TEST(TailBuffer, PlacesALineWhereItEndedAndShowsTheUnfinishedOne) {
  TailBuffer tail(1024);
  tail.append(kOut, "be");
  tail.append(kErr, "between\n");
  tail.append(kOut, "gin\nunfinished");
  EXPECT_EQ(tail.lines(), (Lines{{kErr, "between"}, {kOut, "begin"}, {kOut, "unfinished"}}));
  tail.append(kErr, "last\n");
  EXPECT_EQ(tail.lines().back(), (TailLine{kErr, "last"}));
}

TEST(TailBuffer, KeepsEmptyLines) {
  TailBuffer tail(1024);
  tail.append(kOut, "\n\na\n");
  EXPECT_EQ(tail.lines(), (Lines{{kOut, ""}, {kOut, ""}, {kOut, "a"}}));
}

TEST(TailBuffer, KeepsOnlyTheLastDrawingOfAProgressBar) {
  TailBuffer tail(1024);
  tail.append(kErr, "before\n");
  for (int percent = 0; percent <= 100; ++percent) tail.append(kErr, "\r" + std::to_string(percent) + "%");
  EXPECT_EQ(tail.lines(), (Lines{{kErr, "before"}, {kErr, "100%"}}));
  tail.append(kErr, "\ndone\r\n");
  EXPECT_EQ(tail.lines(), (Lines{{kErr, "before"}, {kErr, "100%"}, {kErr, "done"}}));
}

TEST(TailBuffer, KeepsWhatABarShowsWhileTheReturnStandsAtItsEnd) {
  TailBuffer tail(1024);
  tail.append(kErr, "50%\r");
  EXPECT_EQ(tail.lines(), (Lines{{kErr, "50%"}}));
  tail.append(kErr, "60%\r");
  EXPECT_EQ(tail.lines(), (Lines{{kErr, "60%"}}));
  tail.append(kErr, "\n");
  EXPECT_EQ(tail.lines(), (Lines{{kErr, "60%"}})) << "a return before the newline erases nothing";
}

TEST(TailBuffer, AReturnInTheTextOfAnExceptionErasesNothing) {
  for (const std::size_t step : {1U, 5U, 1000U}) {
    TailBuffer tail(1024);
    const std::string text = "[rank0]: ValueError: 50%\rdone\r100%\nValueError\rover\nmy Error: 1\rmy Error: 2\n";
    for (std::size_t at = 0; at < text.size(); at += step) tail.append(kErr, text.substr(at, step));
    EXPECT_EQ(tail.lines(),
              (Lines{{kErr, "[rank0]: ValueError: 50% done 100%"}, {kErr, "over"}, {kErr, "my Error: 2"}}))
        << "in steps of " << step;
  }
}

TEST(TailBuffer, AnEndlessProgressBarDrivesOutNothing) {
  TailBuffer tail(1024);
  tail.append(kOut, "loss 0.25\n");
  for (int i = 0; i < 10'000; ++i) tail.append(kErr, "\rstep " + std::to_string(i));
  EXPECT_EQ(tail.lines(), (Lines{{kOut, "loss 0.25"}, {kErr, "step 9999"}}));
}

TEST(TailBuffer, AFloodOnOneStreamDoesNotDriveOutTheOther) {
  TailBuffer tail(4096);
  tail.append(kErr, "RuntimeError: the cause\n");
  for (int i = 0; i < 1000; ++i) tail.append(kOut, "step " + std::to_string(i) + "\n");
  tail.append(kOut, std::string(100'000, 'x') + "\nend\n");
  const Lines lines = tail.lines();
  EXPECT_EQ(lines.front(), (TailLine{kErr, "RuntimeError: the cause"}));
  EXPECT_EQ(lines.back(), (TailLine{kOut, "end"}));
}

TEST(TailBuffer, NeverShowsALineThatLostItsBeginningWhenThereAreWholeOnes) {
  TailBuffer tail(256);
  for (int i = 0; i < 500; ++i) tail.append(kOut, "line " + std::to_string(i) + "\n");
  const Lines lines = tail.lines();
  ASSERT_FALSE(lines.empty());
  const int first = 500 - static_cast<int>(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].text, "line " + std::to_string(first + static_cast<int>(i)));
  }
}

TEST(TailBuffer, KeepsTheBeginningOfALongLineAndWhatStandsAroundIt) {
  for (const std::size_t step : {1U, 7U, 1000U, 100'000U}) {
    TailBuffer tail(1024);
    const std::string text = "before\nValueError: " + std::string(50'000, 'x') + "\nafter\n";
    for (std::size_t at = 0; at < text.size(); at += step) tail.append(kErr, text.substr(at, step));
    const Lines lines = tail.lines();
    ASSERT_EQ(lines.size(), 3U) << "in steps of " << step;
    EXPECT_EQ(lines[0].text, "before");
    EXPECT_TRUE(lines[1].text.starts_with("ValueError: xxx"));
    EXPECT_LE(lines[1].text.size(), 512U);
    EXPECT_EQ(lines[2].text, "after");
  }
}

TEST(TailBuffer, OccupiesNothingBeforeTheFirstByteAndNoMoreThanItsLimit) {
  constexpr std::size_t kLimit = 16 * 1024;
  TailBuffer tail(kLimit);
  EXPECT_EQ(tail.memory_bytes(), 0U);
  for (int i = 0; i < 2000; ++i) {
    tail.append(kOut, std::string(static_cast<std::size_t>(i) * 7 % 9000, 'x') + "\n");
    tail.append(kErr, "short " + std::to_string(i) + "\n");
    ASSERT_LE(tail.memory_bytes(), kLimit) << "after " << i << " rounds";
  }
  EXPECT_EQ(tail.lines().back(), (TailLine{kErr, "short 1999"}));
}

TEST(TailBuffer, StaysWithinItsLimitWhenItsOrderOfArrivalGrowsAgainAfterDropping) {
  std::mt19937 random(11);
  TailBuffer tail(512);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t length = random() % 20 == 0 ? 200 : random() % 4;
    std::string bytes(length, 'a');
    if (random() % 3 == 0) bytes += '\r';
    tail.append(random() % 2 == 0 ? kErr : kOut, bytes);
    ASSERT_LE(tail.memory_bytes(), 512U) << "round " << i;
  }
}

TEST(TailBuffer, IsAlwaysASuffixOfEachStream) {
  std::mt19937 random(7);
  TailBuffer tail(512);
  std::string written[2];
  for (int i = 0; i < 3000; ++i) {
    const bool err = random() % 3 == 0;
    std::string bytes;
    for (std::size_t n = random() % (random() % 10 == 0 ? 600 : 20); n > 0; --n)
      bytes += random() % 6 == 0 ? '\n' : 'a';
    tail.append(err ? kErr : kOut, bytes);
    written[err] += bytes;
    std::string kept[2];
    for (const TailLine& line : tail.lines()) kept[line.stream == kErr] += line.text + "\n";
    for (int stream = 0; stream < 2; ++stream) {
      const std::string whole = written[stream].ends_with('\n') ? written[stream] : written[stream] + "\n";
      ASSERT_TRUE(whole.ends_with(kept[stream]) || kept[stream].empty() || written[stream].empty())
          << "round " << i << ", stream " << stream;
    }
  }
}

}  // namespace
}  // namespace lrun::launcher
