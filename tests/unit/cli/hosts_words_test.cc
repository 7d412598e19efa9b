#include "cli/hosts_words.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(HostsWords, TellWhatHappensToTheJobOnce) {
  HostsWords words(3);
  EXPECT_EQ(words.of_job(1, "rank 3 failed\n"), "");
  EXPECT_EQ(words.of_job(0, "rank 3 failed\n"), "rank 3 failed\n");
  EXPECT_EQ(words.lost(2), "") << "others are still there to tell";
}

TEST(HostsWords, OfTheNextHostTakeThePlaceOfALostOne) {
  HostsWords words(3);
  EXPECT_EQ(words.of_job(1, "a is lost\n"), "");
  EXPECT_EQ(words.of_job(1, "the run was stopped\n"), "");
  EXPECT_EQ(words.lost(0), "a is lost\nthe run was stopped\n");
  EXPECT_EQ(words.of_job(1, "more\n"), "more\n");
  EXPECT_EQ(words.lost(1), "");
  EXPECT_EQ(words.lost(2), "");
  EXPECT_EQ(words.voice(), 3U);
}

TEST(HostsWords, OfAHostAreToldUnlessAnotherHasSaidTheSame) {
  HostsWords words(2);
  EXPECT_TRUE(words.is_new("GPU 3 is busy"));
  EXPECT_FALSE(words.is_new("GPU 3 is busy"));
}

}  // namespace
}  // namespace lrun
