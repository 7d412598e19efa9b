#include "process/launcher_beat.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

constexpr Duration kHeartbeat(5000);
constexpr Duration kStep = kHeartbeat / 10;

/// Looks whenever it is due until the launcher has lost its place. \return since its last beat.
Duration time_to_loss(BeatWatch& watch, SteadyTime last_beat) {
  while (!watch.look(last_beat, watch.due())) {
    if (watch.due() > last_beat + 10 * kHeartbeat) break;
  }
  return std::chrono::duration_cast<Duration>(watch.due() - kStep - last_beat);
}

TEST(BeatWatch, GivesASilentLauncherUpBeforeTheOthersOfItsJobDo) {
  BeatWatch watch(kHeartbeat);
  const SteadyTime beat = steady_now();
  (void)watch.look(beat, beat);
  const Duration silence = time_to_loss(watch, beat);
  EXPECT_LT(silence, kHeartbeat * 3 / 4) << "they may not have heard it for a quarter when it stops";
  EXPECT_GT(silence, kHeartbeat / 2);
}

TEST(BeatWatch, KeepsALauncherThatBeats) {
  BeatWatch watch(kHeartbeat);
  SteadyTime beat = steady_now();
  for (int i = 0; i < 100; ++i) {
    if (watch.due() > beat) beat = watch.due() - kStep;
    EXPECT_FALSE(watch.look(beat, watch.due())) << i;
  }
}

TEST(BeatWatch, GivesALauncherItsTimeAgainWhereItStoodStillItself) {
  BeatWatch watch(kHeartbeat);
  const SteadyTime beat = steady_now();
  (void)watch.look(beat, beat);
  EXPECT_FALSE(watch.look(beat, watch.due()));
  EXPECT_FALSE(watch.look(beat, watch.due() + Duration(3'600'000))) << "both may have been stopped";
  EXPECT_FALSE(watch.look(beat, watch.due()));
  EXPECT_FALSE(watch.look(beat, watch.due()));
  EXPECT_TRUE(watch.look(beat, watch.due()));
}

TEST(BeatWatch, WakesAStoppedGuardInTime) {
  BeatWatch watch(kHeartbeat);
  const SteadyTime beat = steady_now();
  (void)watch.look(beat, beat);
  EXPECT_LT(BeatWatch::alarm(beat, kHeartbeat), watch.due());
}

}  // namespace
}  // namespace lrun
