// Jobs without an etcd whose launchers die, stand still and are cut off from each other: whatever happens, there is
// never a second job, and everybody goes on or stops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include "simulated_cluster.h"

namespace lrun::launcher {
namespace {

using test::Cluster;
using test::kHeartbeat;
using test::kQuiet;

/// All come, and the first round begins.
Cluster met(unsigned seed, int launchers, int least = 1) {
  Cluster cluster(seed, launchers, least);
  for (int i = 0; i < launchers; ++i) cluster.start(i);
  cluster.pass(kHeartbeat);
  EXPECT_EQ(cluster.running(), launchers);
  return cluster;
}

constexpr unsigned kSeeds = 60;

TEST(FailoverSimulation, AJobSurvivesTheProvedDeathOfItsFirstNode) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (int launchers = 2; launchers <= 5; ++launchers) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(launchers) + " launchers");
      Cluster cluster = met(seed, launchers);
      for (int dead = 0; dead + 1 < launchers; ++dead) {
        cluster.kill(dead, false);
        cluster.pass(3 * kHeartbeat);
        ASSERT_EQ(cluster.running(), launchers - dead - 1) << "after the death of launcher " << dead;
      }
    }
  }
}

TEST(FailoverSimulation, AJobSurvivesTheSilenceOfItsFirstNodeWhereMoreThanHalfAreLeft) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (int launchers = 2; launchers <= 5; ++launchers) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(launchers) + " launchers");
      Cluster cluster = met(seed, launchers);
      cluster.kill(0, true);
      cluster.pass(kQuiet);
      EXPECT_EQ(cluster.running(), launchers == 2 ? 0 : launchers - 1);
      cluster.expect_everybody_decided();
    }
  }
}

/// The first `launchers` of five are on one side, with the leader.
TEST(FailoverSimulation, OfTwoPartsTheLargerGoesOn) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (int all = 2; all <= 5; ++all) {
      for (int part = 1; part < all; ++part) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(part) + " of " + std::to_string(all));
        Cluster cluster = met(seed, all);
        for (int i = 0; i < part; ++i) {
          for (int j = part; j < all; ++j) cluster.cut(i, j), cluster.cut(j, i);
        }
        cluster.pass(kQuiet);
        const bool with_leader = 2 * part >= all;
        EXPECT_EQ(cluster.running(), with_leader ? part : all - part);
        EXPECT_EQ(cluster.launcher(0).running, with_leader);
        cluster.heal();
        cluster.pass(kQuiet);
        EXPECT_EQ(cluster.running(), with_leader ? part : all - part) << "after the cut was healed";
        cluster.expect_everybody_decided();
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(FailoverSimulation, AHolderThatGoesOnAfterAStopFindsThatItWasReplaced) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Cluster cluster = met(seed, 3);
    cluster.stop(0);
    cluster.pass(kQuiet);
    EXPECT_TRUE(cluster.launcher(1).running && cluster.launcher(2).running);
    cluster.go_on(0);
    cluster.pass(2 * kHeartbeat);
    EXPECT_FALSE(cluster.launcher(0).alive);
    EXPECT_EQ(cluster.running(), 2);
  }
}

/// Whenever it comes back after another one leads: it joins the job.
TEST(FailoverSimulation, TheFirstLauncherThatIsStartedAgainJoinsItsJob) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (int launchers = 2; launchers <= 5; ++launchers) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(launchers) + " launchers");
      Cluster cluster = met(seed, launchers);
      for (int times = 0; times < 3; ++times) {
        cluster.kill(0, false);
        cluster.pass(3 * kHeartbeat);
        ASSERT_EQ(cluster.running(), launchers - 1);
        cluster.start_again(0);
        cluster.pass(3 * kHeartbeat);
        ASSERT_EQ(cluster.running(), launchers) << "started again " << times + 1 << " times";
        EXPECT_EQ(cluster.jobs(), 1);
      }
      // A launcher that led meanwhile, and comes to the endpoint, is redirected.
      cluster.kill(1, false);
      cluster.pass(3 * kHeartbeat);
      cluster.start_again(1);
      cluster.pass(3 * kHeartbeat);
      ASSERT_EQ(cluster.running(), launchers);
    }
  }
}

/// Before the others have noticed, or while they vote: some schedules begin the job at the endpoint, where the others
/// join it, and some of two nodes end it, because nobody can prove that the first one is dead.
TEST(FailoverSimulation, AFirstLauncherThatIsStartedAgainAtOnceMakesNoSecondJob) {
  for (unsigned seed = 0; seed < 10 * kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int launchers = 2 + static_cast<int>(seed % 4);
    Cluster cluster = met(seed, launchers);
    cluster.kill(0, false);
    cluster.pass(Duration(seed * 7 % 6000));
    cluster.start_again(0);
    cluster.pass(kQuiet);
    cluster.expect_everybody_decided();
    EXPECT_EQ(cluster.running(), launchers);
    EXPECT_EQ(cluster.jobs(), 1);
    if (::testing::Test::HasFailure()) return;
  }
}

/// One of four is left, which cannot go on, but invites whoever listens at the endpoint before it knows that.
TEST(FailoverSimulation, AFirstLauncherThatWasInvitedToNothingBeginsItsJob) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (const bool dies : {false, true}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (dies ? ", the one that invites it dies" : ""));
      Cluster cluster = met(seed, 4);
      for (const int off : {2, 3}) cluster.kill(off, true);
      cluster.kill(0, false);
      cluster.pass(kHeartbeat / 2);
      ASSERT_NE(cluster.launcher(1).holds, 0);
      cluster.start_again(0);
      cluster.pass(kHeartbeat / 2);
      ASSERT_TRUE(cluster.launcher(0).sent_to);
      ASSERT_EQ(cluster.running(), 0);
      if (dies) cluster.kill(1, false);
      cluster.pass(4 * kHeartbeat);
      EXPECT_FALSE(cluster.launcher(1).alive) << "it has no majority";
      EXPECT_TRUE(cluster.launcher(0).running);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

/// LRUN_SEED=n replays one schedule.
TEST(FailoverSimulation, NeverMakesTwoJobsOrHangsWhateverHappens) {
  const char* const one = std::getenv("LRUN_SEED");
  const unsigned first = one != nullptr ? static_cast<unsigned>(std::strtoul(one, nullptr, 10)) : 1;
  const char* const many = std::getenv("LRUN_SCHEDULES");
  const unsigned last = one != nullptr    ? first
                        : many != nullptr ? static_cast<unsigned>(std::strtoul(many, nullptr, 10))
                                          : 3000;
  for (unsigned seed = first; seed <= last && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed) + " replays this schedule");
    std::mt19937 random(seed);
    const auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    const int launchers = draw(2, 6);
    Cluster cluster(seed, launchers, draw(1, launchers));
    for (int i = 0; i < launchers; ++i) {
      if (i == 0 || draw(0, 4) != 0) cluster.start(i);
    }
    cluster.pass(Duration(draw(0, 8000)));
    for (int deeds = draw(1, 9); deeds > 0; --deeds) {
      const int whom = draw(0, 1) == 0 ? draw(0, launchers - 1) : draw(0, std::min(1, launchers - 1));
      const int side = draw(1, (1 << launchers) - 2);
      switch (draw(0, 10)) {
        case 0:
        case 1:
          cluster.kill(whom, false);
          break;
        case 2:
          cluster.kill(whom, true);
          break;
        case 3:
          cluster.stop(whom);
          break;
        case 4:
          for (int i = 0; i < launchers; ++i) cluster.go_on(i);
          break;
        case 5:
          cluster.cut(whom, draw(0, launchers - 1));
          break;
        case 6:
          for (int i = 0; i < launchers; ++i) {
            for (int j = 0; j < launchers; ++j) {
              if ((side >> i & 1) != (side >> j & 1)) cluster.cut(i, j);
            }
          }
          break;
        case 7:
          cluster.heal();
          break;
        case 8:
        case 9:
          cluster.start_again(draw(0, 2) == 0 ? whom : 0);
          break;
        default:
          if (!cluster.launcher(whom).alive && !cluster.launcher(whom).membership && whom != 0) cluster.start(whom);
          break;
      }
      cluster.pass(Duration(draw(0, draw(0, 1) == 0 ? 600 : 9000)));
    }
    cluster.pass(kQuiet);
    for (int i = 0; i < launchers; ++i) cluster.go_on(i);
    cluster.heal();
    cluster.pass(kQuiet);
    cluster.expect_everybody_decided();
  }
}

}  // namespace
}  // namespace lrun::launcher
