#include <gtest/gtest.h>

#include <csignal>

#include "decisions.h"

namespace lrun {
namespace {

TEST(Policy, FinishesWhenTheLastWorkerSucceeded) {
  Decision decision = decide(running(2), WorkerEnded{true});
  EXPECT_TRUE(decision.actions.empty()) << "one that ends early just leaves";
  decision = decide(decision.state, WorkerEnded{true});
  EXPECT_NE(find<Finish>(decision), nullptr);
  EXPECT_EQ(decision.state.end.kind, EndKind::kSucceeded);
}

TEST(Policy, StopsTheOthersWithTermWhenOneFails) {
  const Decision decision = decide(running(4), WorkerEnded{false});
  ASSERT_NE(find<StopWorkers>(decision), nullptr);
  EXPECT_EQ(find<StopWorkers>(decision)->signal_number, SIGTERM);
  EXPECT_NE(find<Announce>(decision), nullptr) << "the cause is told when it is seen";
  ASSERT_NE(find<ArmGrace>(decision), nullptr);
  EXPECT_EQ(find<ArmGrace>(decision)->grace, Duration(30'000));
  EXPECT_EQ(decision.state.phase, Phase::kStopping);
  EXPECT_EQ(decision.state.end.kind, EndKind::kWorkerFailed);
}

TEST(Policy, AnOnlyWorkerThatFailsEndsTheRunAtOnce) {
  const Decision decision = decide(running(1), WorkerEnded{false});
  EXPECT_NE(find<Finish>(decision), nullptr);
  EXPECT_EQ(find<StopWorkers>(decision), nullptr);
  EXPECT_EQ(decision.state.phase, Phase::kOver);
}

TEST(Policy, WaitsForNobodyThatCannotBeKilled) {
  SupervisionState state = running(3, Duration(0));
  const Decision killing = decide(state, WorkerEnded{false});
  EXPECT_EQ(killing.state.phase, Phase::kKilling);
  const Decision given_up = decide(killing.state, KillExpired{});
  EXPECT_NE(find<GiveUp>(given_up), nullptr);
  EXPECT_NE(find<Finish>(given_up), nullptr);
  EXPECT_EQ(given_up.state.phase, Phase::kOver);
  EXPECT_TRUE(decide(state, KillExpired{}).actions.empty()) << "of an earlier kill";
}

TEST(Policy, GivesTheOthersAMomentAfterAVictim) {
  const Decision decision = decide(settling_run(4, Duration(0), Duration(250)), kVictim);
  ASSERT_NE(find<ArmSettle>(decision), nullptr);
  EXPECT_EQ(find<ArmSettle>(decision)->settle, Duration(250));
  EXPECT_EQ(find<StopWorkers>(decision), nullptr);
  const Decision expired = decide(decision.state, SettleExpired{});
  ASSERT_NE(find<StopWorkers>(expired), nullptr);
  EXPECT_EQ(find<StopWorkers>(expired)->signal_number, SIGTERM);
  EXPECT_EQ(expired.state.end.kind, EndKind::kWorkerFailed);
}

TEST(Policy, EndsTheMomentWhenTheCulpritHasSpoken) {
  const Decision decision = decide(settling_run(4, Duration(0), Duration(250)), kVictim);
  const Decision another = decide(decision.state, kVictim);
  EXPECT_TRUE(another.actions.empty()) << "another victim tells nothing new";
  EXPECT_NE(find<StopWorkers>(decide(another.state, kOwnError)), nullptr);
}

TEST(Policy, WaitsForTheWholeMomentThatWasAskedFor) {
  const Decision decision = decide(settling_run(4, Duration(2000), Duration(2000)), kOwnError);
  ASSERT_NE(find<ArmSettle>(decision), nullptr);
  EXPECT_TRUE(decide(decision.state, kOwnError).actions.empty());
}

TEST(Policy, HasNoMomentForAnErrorByDefault) {
  const Decision decision = decide(settling_run(4, Duration(0), Duration(250)), kOwnError);
  EXPECT_EQ(find<ArmSettle>(decision), nullptr);
  EXPECT_NE(find<StopWorkers>(decision), nullptr);
}

TEST(Policy, LetsTheOthersStartWhereAskedTo) {
  SupervisionState state = settling_run(4, Duration(0), Duration(250));
  state.settle_at_start = Duration(100);
  const Decision decision = decide(state, WorkerEnded{.success = false, .starting = true});
  ASSERT_NE(find<ArmSettle>(decision), nullptr);
  EXPECT_EQ(find<ArmSettle>(decision)->settle, Duration(100));
  EXPECT_NE(find<StopWorkers>(decide(state, kOwnError)), nullptr) << "all have started long ago";
}

TEST(Policy, NeedsNoMomentWhenNobodyIsLeft) {
  const Decision alone = decide(settling_run(1, Duration(0), Duration(250)), kVictim);
  EXPECT_NE(find<Finish>(alone), nullptr);
  const Decision first = decide(settling_run(2, Duration(2000), Duration(2000)), kOwnError);
  const Decision last = decide(first.state, WorkerEnded{true});
  EXPECT_NE(find<Finish>(last), nullptr);
  EXPECT_NE(find<Announce>(last), nullptr);
  EXPECT_EQ(last.state.end.kind, EndKind::kWorkerFailed);
  EXPECT_TRUE(decide(last.state, SettleExpired{}).actions.empty());
}

TEST(Policy, StopsAtOnceWhenInterruptedWhileItSettles) {
  const Decision settling = decide(settling_run(4, Duration(2000), Duration(2000)), kOwnError);
  for (const Event& event : {Event(SignalArrived{SIGINT}), Event(ConsoleClosed{}), Event(StopRequested{})}) {
    const Decision decision = decide(settling.state, event);
    EXPECT_NE(find<StopWorkers>(decision), nullptr);
    EXPECT_EQ(decision.state.end.kind, EndKind::kWorkerFailed) << "what came first stays the reason";
  }
  EXPECT_NE(find<KillGroups>(decide(settling.state, GuardDied{})), nullptr);
}

TEST(Policy, AWatchedLineLeavesARankAMomentToFailByItself) {
  TimeIsOver watched{{.kind = EndKind::kWatched}};
  watched.moment = Duration(250);
  const Decision waits = decide(running(2), watched);
  EXPECT_NE(find<ArmSettle>(waits), nullptr);
  EXPECT_EQ(find<StopWorkers>(waits), nullptr);
  EXPECT_TRUE(waits.state.unwanted) << "no attempt follows, whatever ends this one";
  EXPECT_EQ(decide(waits.state, SettleExpired{}).state.end.kind, EndKind::kWatched);
  EXPECT_EQ(decide(waits.state, kOwnError).state.end.kind, EndKind::kWorkerFailed);
  EXPECT_EQ(decide(waits.state, SignalArrived{SIGINT}).state.end.kind, EndKind::kWatched);
  Decision ended = decide(waits.state, WorkerEnded{});
  ended = decide(ended.state, WorkerEnded{});
  EXPECT_EQ(ended.state.end.kind, EndKind::kWatched) << "all ended well, but for that line";
}

TEST(Policy, PassesOnTheSignalThatLrunReceived) {
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    const Decision decision = decide(running(2), SignalArrived{signal_number, true, false, true, true});
    ASSERT_NE(find<StopWorkers>(decision), nullptr);
    EXPECT_EQ(find<StopWorkers>(decision)->signal_number, signal_number);
    EXPECT_EQ(find<StopWorkers>(decision)->whole_groups, signal_number != SIGTERM) << "as a terminal sends it";
    EXPECT_EQ(decision.state.end, (RunEnd{EndKind::kInterrupted, signal_number, 0, "", false, "", -1, true}));
  }
}

TEST(Policy, ASecondSignalSkipsTheWait) {
  const Decision stopping = decide(running(2), SignalArrived{SIGINT});
  for (const int signal_number : {SIGINT, SIGTERM, SIGQUIT}) {
    const Decision now = decide(stopping.state, SignalArrived{signal_number});
    EXPECT_NE(find<KillGroups>(now), nullptr);
    EXPECT_EQ(now.state.phase, Phase::kKilling);
    EXPECT_TRUE(decide(now.state, SignalArrived{SIGINT}).actions.empty()) << "more cannot be done";
  }
  EXPECT_TRUE(decide(stopping.state, SignalArrived{SIGHUP}).actions.empty()) << "a closing terminal sends it as well";
}

TEST(Policy, CtrlCHurriesAMachineThatIsAboutToGoAndTermDoesNot) {
  const Decision stopping = decide(running(2), TimeIsOver{{.kind = EndKind::kNotice, .who = "notice"}});
  EXPECT_TRUE(stopping.state.unwanted) << "no attempt follows";
  const Decision term = decide(stopping.state, SignalArrived{SIGTERM});
  EXPECT_TRUE(term.actions.empty());
  EXPECT_TRUE(decide(term.state, SignalArrived{SIGTERM}).actions.empty());
  EXPECT_NE(find<KillGroups>(decide(term.state, SignalArrived{SIGINT})), nullptr);
}

TEST(Policy, ATermThatAManagerRepeatsKeepsTheGrace) {
  const Decision stopping = decide(running(2), SignalArrived{SIGTERM});
  const Decision again = decide(stopping.state, SignalArrived{.signal_number = SIGTERM, .may_hurry = false});
  EXPECT_TRUE(again.actions.empty()) << "a checkpoint would be lost";
  EXPECT_NE(find<KillGroups>(decide(again.state, SignalArrived{SIGINT})), nullptr) << "a person still may hurry it";
}

TEST(Policy, ASignalToBothProcessesOfLrunIsOneSignal) {
  for (const bool directly_first : {true, false}) {
    const Decision stopping = decide(running(2), SignalArrived{SIGTERM, !directly_first});
    const Decision again = decide(stopping.state, SignalArrived{SIGTERM, directly_first});
    EXPECT_TRUE(again.actions.empty()) << "a checkpoint would be lost";
    EXPECT_NE(find<KillGroups>(decide(again.state, SignalArrived{SIGTERM})), nullptr) << "a second one hurries";
  }
}

TEST(Policy, PassesUserSignalsOnWithoutStopping) {
  const Decision decision = decide(running(2), SignalArrived{SIGUSR1});
  ASSERT_NE(find<PassOn>(decision), nullptr);
  EXPECT_EQ(find<PassOn>(decision)->signal_number, SIGUSR1);
  EXPECT_EQ(decision.state.phase, Phase::kRunning);
  EXPECT_TRUE(decide(running(2), SignalArrived{SIGUSR1, false}).actions.empty()) << "the guard passes it on, too";
}

TEST(Policy, CtrlCSkipsTheGraceOfAFailureAndTermDoesNot) {
  const Decision failed = decide(running(3), WorkerEnded{false});
  EXPECT_TRUE(decide(failed.state, SignalArrived{SIGTERM}).actions.empty()) << "a scheduler stops the rest of the job";
  EXPECT_NE(find<KillGroups>(decide(failed.state, SignalArrived{SIGINT})), nullptr);
}

TEST(Policy, KillsWhenTheGraceIsOver) {
  const Decision stopping = decide(running(2), WorkerEnded{false});
  const Decision killing = decide(stopping.state, GraceExpired{});
  EXPECT_NE(find<KillGroups>(killing), nullptr);
  EXPECT_TRUE(killing.state.end.grace_expired);
  EXPECT_TRUE(decide(killing.state, GraceExpired{}).actions.empty());
  EXPECT_NE(find<Finish>(decide(killing.state, WorkerEnded{false})), nullptr);
}

TEST(Policy, AGraceOfZeroKillsAtOnce) {
  const Decision decision = decide(running(2, Duration(0)), SignalArrived{SIGTERM});
  EXPECT_NE(find<KillGroups>(decision), nullptr);
  EXPECT_EQ(find<ArmGrace>(decision), nullptr);
}

TEST(Policy, KeepsTheFirstReason) {
  const Decision failed = decide(running(3), WorkerEnded{false});
  EXPECT_EQ(decide(failed.state, SignalArrived{SIGTERM}).state.end.kind, EndKind::kWorkerFailed);
  EXPECT_EQ(decide(failed.state, ConsoleClosed{}).state.end.kind, EndKind::kWorkerFailed);
  const Decision interrupted = decide(running(3), SignalArrived{SIGINT});
  EXPECT_EQ(decide(interrupted.state, WorkerEnded{false}).state.end.kind, EndKind::kInterrupted)
      << "a worker that obeys with a code is not the cause";
}

TEST(Policy, SuspendsAndResumesOnce) {
  const Decision suspended = decide(running(2), SignalArrived{SIGTSTP});
  EXPECT_NE(find<Suspend>(suspended), nullptr);
  EXPECT_TRUE(decide(suspended.state, SignalArrived{SIGTSTP}).actions.empty());
  const Decision resumed = decide(suspended.state, SignalArrived{SIGCONT});
  EXPECT_NE(find<Resume>(resumed), nullptr);
  EXPECT_TRUE(decide(resumed.state, SignalArrived{SIGCONT}).actions.empty());
}

TEST(Policy, ResumesASuspendedRunBeforeItIsAskedToEnd) {
  const Decision suspended = decide(running(2), SignalArrived{SIGTSTP});
  const Decision stopping = decide(suspended.state, SignalArrived{SIGTERM});
  EXPECT_NE(find<Resume>(stopping), nullptr);
  EXPECT_FALSE(stopping.state.suspended);
}

TEST(Policy, KillsAtOnceWhenTheGuardIsGoneAndSaysWhyFirst) {
  const Decision decision = decide(running(2), GuardDied{});
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<Announce>(decision.actions[0]));
  EXPECT_TRUE(std::holds_alternative<KillGroups>(decision.actions[1]));
  EXPECT_EQ(decision.state.end.kind, EndKind::kGuardDied);
}

/// The workers obeyed TERM; what they had started may still save something.
SupervisionState lingering() {
  const Decision stopping = decide(running(1), SignalArrived{SIGTERM});
  return decide(stopping.state, WorkerEnded{false}).state;
}

TEST(Policy, WhatWorkersLeftBehindHasTheRestOfTheGrace) {
  EXPECT_EQ(lingering().phase, Phase::kLingering);
  const Decision expired = decide(lingering(), GraceExpired{});
  EXPECT_NE(find<Finish>(expired), nullptr);
  EXPECT_EQ(expired.state.phase, Phase::kOver);
  EXPECT_FALSE(expired.state.end.grace_expired) << "no worker had to be killed";
}

TEST(Policy, OnlyWhatHurriesEndsTheGraceOfWhatIsLeft) {
  for (const int signal_number : {SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGHUP}) {
    const Decision decision = decide(lingering(), SignalArrived{signal_number});
    EXPECT_EQ(decision.state.phase, Phase::kLingering) << "signal " << signal_number;
    EXPECT_EQ(find<Finish>(decision), nullptr) << "signal " << signal_number;
  }
  for (const int signal_number : {SIGINT, SIGTERM, SIGQUIT}) {
    EXPECT_NE(find<Finish>(decide(lingering(), SignalArrived{signal_number})), nullptr) << "signal " << signal_number;
    EXPECT_EQ(find<Finish>(decide(lingering(), SignalArrived{signal_number, false})), nullptr)
        << "what came directly never hurries: signal " << signal_number;
  }
  EXPECT_NE(find<Finish>(decide(lingering(), GuardDied{})), nullptr);
}

TEST(Policy, NothingLingersAfterWorkersThatWereNotAskedToEndOrWereKilled) {
  EXPECT_EQ(decide(running(1), WorkerEnded{true}).state.phase, Phase::kOver);
  const Decision killing = decide(running(1, Duration(0)), SignalArrived{SIGTERM});
  EXPECT_EQ(decide(killing.state, WorkerEnded{false}).state.phase, Phase::kOver);
}

SupervisionState failed() { return decide(running(1), WorkerEnded{false}).state; }

TEST(Policy, StartsAgainWhenTheBackoffIsOver) {
  const Decision planned = decide(failed(), RestartPlanned{Duration(2000)});
  ASSERT_NE(find<ArmBackoff>(planned), nullptr);
  EXPECT_EQ(find<ArmBackoff>(planned)->delay, Duration(2000));
  EXPECT_EQ(planned.state.phase, Phase::kBackingOff);
  const Decision expired = decide(planned.state, BackoffExpired{});
  EXPECT_NE(find<ConfirmStart>(expired), nullptr);
  EXPECT_EQ(find<StartAgain>(expired), nullptr) << "what came meanwhile is heard first";
  EXPECT_NE(find<StartAgain>(decide(expired.state, StartConfirmed{})), nullptr);
}

SupervisionState about_to_start_again() {
  return decide(decide(failed(), RestartPlanned{Duration(2000)}).state, BackoffExpired{}).state;
}

TEST(Policy, WhatComesBetweenTheEndOfTheBackoffAndTheStartEndsTheRun) {
  for (const Event& event :
       {Event(SignalArrived{SIGTERM}), Event(SignalArrived{SIGINT, false}), Event(SignalArrived{SIGHUP}),
        Event(SignalArrived{.signal_number = SIGUSR1, .named = true}), Event(ConsoleClosed{}), Event(StopRequested{}),
        Event(TimeIsOver{{.kind = EndKind::kTimedOut, .limit_ms = 5}}), Event(GuardDied{})}) {
    const Decision decision = decide(about_to_start_again(), event);
    EXPECT_NE(find<Finish>(decision), nullptr) << "event " << event.index();
    EXPECT_NE(decision.state.end.kind, EndKind::kWorkerFailed) << "event " << event.index();
    EXPECT_TRUE(decide(decision.state, StartConfirmed{}).actions.empty()) << "event " << event.index();
  }
}

TEST(Policy, NothingStartsWhileTheRunIsSuspended) {
  const Decision suspended = decide(about_to_start_again(), SignalArrived{SIGTSTP});
  EXPECT_NE(find<Suspend>(suspended), nullptr);
  const Decision waiting = decide(suspended.state, StartConfirmed{});
  EXPECT_EQ(find<StartAgain>(waiting), nullptr);
  EXPECT_NE(find<ArmBackoff>(waiting), nullptr) << "it starts when it is continued";
  const SupervisionState resumed = decide(waiting.state, SignalArrived{SIGCONT}).state;
  EXPECT_NE(find<StartAgain>(decide(decide(resumed, BackoffExpired{}).state, StartConfirmed{})), nullptr);
}

TEST(Policy, WhoInterruptsTheBackoffEndsTheRun) {
  const SupervisionState waiting = decide(failed(), RestartPlanned{Duration(2000)}).state;
  for (const Event& event : {Event(SignalArrived{SIGTERM}), Event(SignalArrived{SIGINT, false}), Event(ConsoleClosed{}),
                             Event(StopRequested{}), Event(GuardDied{})}) {
    const Decision decision = decide(waiting, event);
    EXPECT_NE(find<Finish>(decision), nullptr) << "event " << event.index();
    EXPECT_NE(decision.state.end.kind, EndKind::kWorkerFailed) << "event " << event.index();
    EXPECT_TRUE(decide(decision.state, BackoffExpired{}).actions.empty()) << "event " << event.index();
  }
  EXPECT_EQ(find<Finish>(decide(waiting, SignalArrived{SIGUSR1})), nullptr);
}

TEST(Policy, NobodyStartsAgainWhatSomebodyWantsToEnd) {
  const Decision stopping = decide(running(2), WorkerEnded{false});
  for (const Event& event : {Event(SignalArrived{SIGTERM}), Event(ConsoleClosed{}), Event(StopRequested{})}) {
    const SupervisionState over = decide(decide(stopping.state, event).state, WorkerEnded{false}).state;
    const Decision decision = decide(over, RestartPlanned{});
    EXPECT_NE(find<Finish>(decision), nullptr) << "event " << event.index();
    EXPECT_EQ(find<ArmBackoff>(decision), nullptr) << "event " << event.index();
  }
  EXPECT_TRUE(decide(failed(), SignalArrived{SIGTERM}).state.unwanted) << "also while the last output is taken over";
}

TEST(Policy, ATimeThatIsOverEndsTheRunLikeAnyStop) {
  const TimeIsOver over{{.kind = EndKind::kTimedOut, .limit_ms = 5}};
  const Decision decision = decide(running(2), over);
  ASSERT_NE(find<StopWorkers>(decision), nullptr);
  EXPECT_EQ(find<StopWorkers>(decision)->signal_number, SIGTERM);
  EXPECT_EQ(decision.state.end.limit_ms, 5);
  EXPECT_TRUE(decision.state.unwanted) << "a restart would take still longer";
  const Decision failed_before = decide(decide(running(2), WorkerEnded{false}).state, over);
  EXPECT_EQ(failed_before.state.end.kind, EndKind::kWorkerFailed);
  EXPECT_TRUE(failed_before.state.unwanted);
}

TEST(Policy, AUserSignalThatIsNamedEndsTheRun) {
  const Decision decision = decide(running(2), SignalArrived{.signal_number = SIGUSR1, .named = true});
  ASSERT_NE(find<StopWorkers>(decision), nullptr);
  EXPECT_EQ(find<StopWorkers>(decision)->signal_number, SIGUSR1);
  EXPECT_EQ(decision.state.end, (RunEnd{.kind = EndKind::kInterrupted, .signal_number = SIGUSR1}));
}

TEST(Policy, NothingFollowsTheEnd) {
  const Decision over = decide(running(1), WorkerEnded{true});
  for (const Event& event : {Event(SignalArrived{SIGINT}), Event(GraceExpired{}), Event(GuardDied{})}) {
    EXPECT_TRUE(decide(over.state, event).actions.empty());
  }
}

RunEnd elsewhere(EndKind kind, int signal_number = 0) {
  return {.kind = kind, .signal_number = signal_number, .node = "b", .node_rank = 1};
}

TEST(Policy, StopsWhenAnotherNodeStops) {
  const Decision failed = decide(running(2), StoppedElsewhere{elsewhere(EndKind::kWorkerFailed)});
  ASSERT_NE(find<StopWorkers>(failed), nullptr);
  EXPECT_EQ(find<StopWorkers>(failed)->signal_number, SIGTERM);
  EXPECT_EQ(failed.state.end, elsewhere(EndKind::kWorkerFailed));
  EXPECT_FALSE(failed.state.unwanted) << "all nodes may start again";
  const Decision interrupted = decide(running(2), StoppedElsewhere{elsewhere(EndKind::kInterrupted, SIGINT)});
  ASSERT_NE(find<StopWorkers>(interrupted), nullptr);
  EXPECT_EQ(find<StopWorkers>(interrupted)->signal_number, SIGINT) << "the workers get what lrun got";
  EXPECT_TRUE(interrupted.state.unwanted);
}

TEST(Policy, KeepsItsOwnReasonWhenAnotherNodeStopsLater) {
  const Decision own = decide(running(3), WorkerEnded{false});
  const Decision later = decide(own.state, StoppedElsewhere{elsewhere(EndKind::kTimedOut)});
  EXPECT_EQ(later.state.end.kind, EndKind::kWorkerFailed);
  EXPECT_TRUE(later.state.unwanted);
  EXPECT_TRUE(later.actions.empty());
}

TEST(Policy, StopsAndMayGoOnWhenTheNodesOfTheJobChange) {
  for (const EndKind kind : {EndKind::kNodeLost, EndKind::kNodeJoined}) {
    const Decision change = decide(running(2), StoppedElsewhere{elsewhere(kind)});
    EXPECT_EQ(change.state.end.kind, kind);
    EXPECT_FALSE(change.state.unwanted);
    ASSERT_NE(find<StopWorkers>(change), nullptr);
    EXPECT_EQ(find<StopWorkers>(change)->signal_number, SIGTERM);
    EXPECT_NE(find<ArmGrace>(change), nullptr) << "they have the same grace as ever";
  }
}

TEST(Policy, CallsTheNextAttemptOffWhenAnotherNodeStopsMeanwhile) {
  SupervisionState state;
  state.phase = Phase::kBackingOff;
  const Decision decision = decide(state, StoppedElsewhere{elsewhere(EndKind::kInterrupted, SIGTERM)});
  EXPECT_NE(find<Finish>(decision), nullptr);
  EXPECT_EQ(decision.state.end, elsewhere(EndKind::kInterrupted, SIGTERM));
}

}  // namespace
}  // namespace lrun
