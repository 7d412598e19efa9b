#include "base/pausable_timer.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lrun {
namespace {

using namespace std::chrono_literals;

TEST(PausableTimer, DoesNotRunOutWhilePausedAndRunsTheRestAfterwards) {
  EventLoop loop;
  PausableTimer timer(loop);
  bool expired = false;
  const auto begin = std::chrono::steady_clock::now();
  timer.arm(60ms, [&] { expired = true; });
  timer.pause();
  bool expired_while_paused = false;
  EventLoop::Timer wait = loop.after(120ms, [&] {
    expired_while_paused = expired;
    timer.resume();
  });
  loop.run();
  EXPECT_FALSE(expired_while_paused);
  EXPECT_TRUE(expired);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 170ms);
}

TEST(PausableTimer, FiresOnce) {
  EventLoop loop;
  PausableTimer timer(loop);
  int fired = 0;
  timer.arm(1ms, [&] {
    ++fired;
    timer.resume();
  });
  loop.run();
  EXPECT_EQ(fired, 1);
}

}  // namespace
}  // namespace lrun
