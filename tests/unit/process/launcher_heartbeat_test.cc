#include "process/launcher_heartbeat.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

constexpr Duration kHeartbeat(5000);
constexpr Duration kStep = kHeartbeat / 10;

/// Looks whenever it is due until the launcher has lost its place. \return since its last last.
Duration time_to_loss(HeartbeatWatch& watch, SteadyTime last) {
  while (!watch.look(last, watch.due())) {
    if (watch.due() > last + 10 * kHeartbeat) break;
  }
  return std::chrono::duration_cast<Duration>(watch.due() - kStep - last);
}

TEST(HeartbeatWatch, GivesASilentLauncherUpBeforeTheOthersOfItsJobDo) {
  HeartbeatWatch watch(kHeartbeat);
  const SteadyTime last = steady_now();
  (void)watch.look(last, last);
  const Duration silence = time_to_loss(watch, last);
  EXPECT_LT(silence, kHeartbeat * 3 / 4) << "they may not have heard it for a quarter when it stops";
  EXPECT_GT(silence, kHeartbeat / 2);
}

TEST(HeartbeatWatch, KeepsALauncherWithAHeartbeat) {
  HeartbeatWatch watch(kHeartbeat);
  SteadyTime last = steady_now();
  for (int i = 0; i < 100; ++i) {
    if (watch.due() > last) last = watch.due() - kStep;
    EXPECT_FALSE(watch.look(last, watch.due())) << i;
  }
}

TEST(HeartbeatWatch, GivesALauncherItsTimeAgainWhereItStoodStillItself) {
  HeartbeatWatch watch(kHeartbeat);
  const SteadyTime last = steady_now();
  (void)watch.look(last, last);
  EXPECT_FALSE(watch.look(last, watch.due()));
  EXPECT_FALSE(watch.look(last, watch.due() + Duration(3'600'000))) << "both may have been stopped";
  EXPECT_FALSE(watch.look(last, watch.due()));
  EXPECT_FALSE(watch.look(last, watch.due()));
  EXPECT_TRUE(watch.look(last, watch.due()));
}

TEST(HeartbeatWatch, WakesAStoppedGuardInTime) {
  HeartbeatWatch watch(kHeartbeat);
  const SteadyTime last = steady_now();
  (void)watch.look(last, last);
  EXPECT_LT(HeartbeatWatch::alarm(last, kHeartbeat), watch.due());
}

}  // namespace
}  // namespace lrun
