#include "multihost/message_dedup.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(MessageDedup, TellsWhatHappensToTheJobOnce) {
  MessageDedup words(3);
  EXPECT_EQ(words.of_job(1, "rank 3 failed\n"), "");
  EXPECT_EQ(words.of_job(0, "rank 3 failed\n"), "rank 3 failed\n");
  EXPECT_EQ(words.lost(2), "") << "others are still there to tell";
}

TEST(MessageDedup, TellsTheTextOfTheNextHostInPlaceOfALostOnes) {
  MessageDedup words(3);
  EXPECT_EQ(words.of_job(1, "a is lost\n"), "");
  EXPECT_EQ(words.of_job(1, "the run was stopped\n"), "");
  EXPECT_EQ(words.lost(0), "a is lost\nthe run was stopped\n");
  EXPECT_EQ(words.of_job(1, "more\n"), "more\n");
  EXPECT_EQ(words.lost(1), "");
  EXPECT_EQ(words.lost(2), "");
  EXPECT_EQ(words.voice(), 3U);
}

TEST(MessageDedup, DoesNotTellAgainForTheNextHostWhatWasTold) {
  MessageDedup words(3);
  EXPECT_EQ(words.of_job(1, "rank 3 failed\n"), "");
  EXPECT_EQ(words.of_job(0, "rank 3 failed\n"), "rank 3 failed\n");
  EXPECT_EQ(words.of_job(0, "attempt 2\n"), "attempt 2\n");
  EXPECT_EQ(words.of_job(1, "attempt 2\n"), "");
  EXPECT_EQ(words.of_job(0, "rank 3 failed\n"), "rank 3 failed\n") << "once more, in the second attempt";
  EXPECT_EQ(words.of_job(2, "rank 3 failed\n"), "");
  EXPECT_EQ(words.lost(0), "") << "all was told";
  EXPECT_EQ(words.of_job(1, "rank 3 failed\n"), "") << "it only comes later";
  EXPECT_EQ(words.of_job(1, "verdict\n"), "verdict\n");
  EXPECT_EQ(words.of_job(2, "attempt 2\n"), "");
  EXPECT_EQ(words.of_job(2, "rank 3 failed\n"), "");
  EXPECT_EQ(words.lost(1), "");
  EXPECT_EQ(words.of_job(2, "verdict\n"), "");
  EXPECT_EQ(words.of_job(2, "rank 3 failed\n"), "rank 3 failed\n") << "a third time";
}

TEST(MessageDedup, KeepsTheNewestOfALostHostsSuccessor) {
  MessageDedup words(2);
  const std::string line(999, 'x');
  for (int i = 0; i < 100; ++i) EXPECT_EQ(words.of_job(1, line + "\n"), "");
  EXPECT_EQ(words.of_job(1, "verdict\n"), "");
  const std::string shown = words.lost(0);
  EXPECT_TRUE(shown.ends_with("x\nverdict\n"));
  EXPECT_LE(shown.size(), 64U * 1024U);
}

TEST(MessageDedup, TellsTheTextOfAHostUnlessAnotherHasSaidTheSame) {
  MessageDedup words(2);
  EXPECT_TRUE(words.is_new("GPU 3 is busy"));
  EXPECT_FALSE(words.is_new("GPU 3 is busy"));
}

}  // namespace
}  // namespace lrun::launcher
