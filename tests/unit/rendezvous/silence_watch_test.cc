#include "rendezvous/silence_watch.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

const SteadyTime kConnected{std::chrono::seconds(100)};

TEST(SilenceWatch, SeesSilenceOfTheLimit) {
  SilenceWatch watch(4s, kConnected);
  for (int i = 1; i < 4; ++i) EXPECT_FALSE(watch.is_silent(kConnected + i * 1s)) << i;
  EXPECT_EQ(watch.rest(kConnected + 3s), 1s);
  EXPECT_TRUE(watch.is_silent(kConnected + 4s));
  watch.heard(kConnected + 4s);
  EXPECT_FALSE(watch.is_still_silent(kConnected + 4s)) << "what came meanwhile was read";
  EXPECT_EQ(watch.last_heard(), kConnected + 4s);
  EXPECT_EQ(watch.rest(kConnected + 9s), 1ms);
}

TEST(SilenceWatch, DoesNotCountTheTimeForWhichThisProcessStoodStill) {
  SilenceWatch watch(4s, kConnected);
  EXPECT_FALSE(watch.is_silent(kConnected + 1h)) << "nobody looked";
  EXPECT_FALSE(watch.is_silent(kConnected + 1h + 2s));
  EXPECT_TRUE(watch.is_silent(kConnected + 1h + 4s));
}

TEST(SilenceWatch, BeginsAnewWithAConnection) {
  SilenceWatch watch(4s, kConnected);
  watch.restart(kConnected + 3s);
  EXPECT_FALSE(watch.is_silent(kConnected + 5s));
}

}  // namespace
}  // namespace lrun::launcher
