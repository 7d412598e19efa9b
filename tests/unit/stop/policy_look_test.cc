// The look at the workers before they are told to end.
#include <gtest/gtest.h>

#include <csignal>

#include "decisions.h"

namespace lrun {
namespace {

SupervisionState looking_run(int workers) {
  SupervisionState state = settling_run(workers, Duration(0), Duration(250));
  state.looks = true;
  return state;
}

const TimeIsOver kOver{{.kind = EndKind::kTimedOut}};

TEST(Policy, LooksWhereWorkersAreBeforeALimitStopsThem) {
  const Decision looking = decide(looking_run(2), kOver);
  EXPECT_NE(find<Announce>(looking), nullptr);
  EXPECT_NE(find<LookAtWorkers>(looking), nullptr);
  EXPECT_EQ(find<StopWorkers>(looking), nullptr) << "they would be elsewhere";
  const Decision stopping = decide(looking.state, LookedAtWorkers{});
  ASSERT_NE(find<StopWorkers>(stopping), nullptr);
  EXPECT_EQ(find<StopWorkers>(stopping)->signal_number, SIGTERM);
  EXPECT_NE(find<ArmGrace>(stopping), nullptr);
  EXPECT_EQ(stopping.state.end.kind, EndKind::kTimedOut);
  EXPECT_EQ(find<Announce>(stopping), nullptr) << "once";
  EXPECT_TRUE(decide(stopping.state, LookedAtWorkers{}).actions.empty());
  EXPECT_EQ(find<LookAtWorkers>(decide(running(2), kOver)), nullptr) << "where nobody can look";
}

TEST(Policy, LooksWhereWorkersAreWhenOnlyVictimsHaveFailed) {
  const Decision settling = decide(looking_run(4), kVictim);
  EXPECT_NE(find<LookAtWorkers>(decide(settling.state, SettleExpired{})), nullptr);
  EXPECT_EQ(find<LookAtWorkers>(decide(settling.state, kOwnError)), nullptr) << "the culprit has spoken";
  EXPECT_EQ(find<LookAtWorkers>(decide(looking_run(4), kOwnError)), nullptr);
  RunEnd elsewhere{.kind = EndKind::kWorkerFailed, .node = "b", .node_rank = 1};
  EXPECT_NE(find<LookAtWorkers>(decide(looking_run(4), StoppedElsewhere{elsewhere, true})), nullptr);
  EXPECT_EQ(find<LookAtWorkers>(decide(looking_run(4), StoppedElsewhere{elsewhere, false})), nullptr);
}

TEST(Policy, LooksWhereWorkersAreAfterCtrlCIfOneHadEndedWithZero) {
  EXPECT_EQ(find<LookAtWorkers>(decide(looking_run(2), SignalArrived{SIGINT})), nullptr);
  const SupervisionState one_left = decide(looking_run(2), WorkerEnded{true}).state;
  const Decision looking = decide(one_left, SignalArrived{SIGINT});
  ASSERT_NE(find<LookAtWorkers>(looking), nullptr);
  const Decision stopping = decide(looking.state, LookedAtWorkers{});
  ASSERT_NE(find<StopWorkers>(stopping), nullptr);
  EXPECT_EQ(find<StopWorkers>(stopping)->signal_number, SIGINT);
  EXPECT_EQ(find<LookAtWorkers>(decide(one_left, SignalArrived{SIGTERM})), nullptr) << "a scheduler's time is short";
  SupervisionState at_once = one_left;
  at_once.grace = Duration(0);
  EXPECT_NE(find<KillGroups>(decide(at_once, SignalArrived{SIGINT})), nullptr);
}

TEST(Policy, LooksWhereWorkersAreAfterCtrlCOnARunThatHasLongBeenQuiet) {
  EXPECT_NE(find<LookAtWorkers>(decide(looking_run(2), SignalArrived{.signal_number = SIGINT, .in_quiet = true})),
            nullptr);
  EXPECT_EQ(find<LookAtWorkers>(decide(looking_run(2), SignalArrived{.signal_number = SIGTERM, .in_quiet = true})),
            nullptr)
      << "a scheduler's time is short";
}

TEST(Policy, ASecondCtrlCDoesNotWaitForTheLook) {
  const SupervisionState one_left = decide(looking_run(2), WorkerEnded{true}).state;
  const Decision looking = decide(one_left, SignalArrived{SIGINT});
  EXPECT_TRUE(decide(looking.state, SignalArrived{SIGTERM, false}).actions.empty());
  const Decision killing = decide(looking.state, SignalArrived{SIGINT});
  EXPECT_NE(find<KillGroups>(killing), nullptr);
  EXPECT_TRUE(decide(killing.state, LookedAtWorkers{}).actions.empty());
  EXPECT_NE(find<KillGroups>(decide(decide(looking_run(2), kOver).state, GuardDied{})), nullptr);
}

TEST(Policy, IsOverWhenTheLastWorkerEndsWhileItIsLookedAt) {
  const Decision looking = decide(looking_run(1), kOver);
  const Decision over = decide(looking.state, WorkerEnded{false});
  EXPECT_NE(find<Finish>(over), nullptr);
  EXPECT_EQ(over.state.end.kind, EndKind::kTimedOut) << "what came first stays the reason";
  EXPECT_TRUE(decide(over.state, LookedAtWorkers{}).actions.empty());
}

TEST(Policy, ContinuesARunThatWasSuspendedWhileItWasLookedAt) {
  const Decision looking = decide(looking_run(2), kOver);
  const Decision suspended = decide(looking.state, SignalArrived{SIGTSTP});
  const Decision stopping = decide(suspended.state, LookedAtWorkers{});
  EXPECT_NE(find<Resume>(stopping), nullptr);
  EXPECT_NE(find<StopWorkers>(stopping), nullptr);
}

}  // namespace
}  // namespace lrun
