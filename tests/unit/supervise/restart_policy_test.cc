#include "supervise/restart_policy.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace lrun::launcher {
namespace {

using Kind = RestartChoice::Kind;

FailureRecord exited(int code, const std::string& error, Duration lifetime = Duration(100)) {
  FailureRecord record;
  record.value = code;
  record.cause = Cause::kOwnError;
  record.error = error;
  record.lifetime_ms = lifetime.count();
  return record;
}

FailureRecord killed_by(int signal_number) {
  FailureRecord record;
  record.ending = FailureRecord::Ending::kSignaled;
  record.value = signal_number;
  record.cause = Cause::kFatalSignal;
  return record;
}

Verdict failed(FailureRecord culprit) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = std::move(culprit);
  return verdict;
}

/// Attempts that fail with the given errors, one after the other.
RestartChoice after(const RestartRules& rules, const std::vector<FailureRecord>& failures) {
  RestartChoice choice;
  for (const FailureRecord& failure : failures) choice = choose_restart(rules, choice.history, failed(failure));
  return choice;
}

TEST(RestartPolicy, OnlyAFailureIsFollowedByARestart) {
  for (const RunEnd::Kind kind :
       {RunEnd::Kind::kSucceeded, RunEnd::Kind::kInterrupted, RunEnd::Kind::kConsoleClosed, RunEnd::Kind::kRequested,
        RunEnd::Kind::kGuardDied, RunEnd::Kind::kHeadLost, RunEnd::Kind::kStartFailed}) {
    Verdict verdict;
    verdict.end.kind = kind;
    EXPECT_EQ(choose_restart({.most = 3}, {}, verdict).kind, Kind::kNone) << static_cast<int>(kind);
  }
  EXPECT_EQ(choose_restart({.most = 0}, {}, failed(exited(1, "a"))).kind, Kind::kNone);
}

/// A rank ended with 0 right away, and another lost it.
Verdict ended_early(const FailureRecord& waited) {
  FailureRecord early = exited(0, "");
  early.cause = Cause::kEndedEarly;
  Verdict verdict = failed(early);
  verdict.overruled = waited;
  return verdict;
}

TEST(RestartPolicy, OfAnEarlyEndTheFailureOfTheRankThatWaitedCounts) {
  const RestartRules rules{.most = 3, .repeats_identical = false};
  const RestartHistory once = choose_restart(rules, {}, ended_early(exited(1, "lost in all_reduce"))).history;
  EXPECT_EQ(choose_restart(rules, once, ended_early(exited(1, "lost in all_reduce"))).kind, Kind::kRepeats);
  EXPECT_EQ(choose_restart(rules, once, ended_early(exited(1, "lost in broadcast"))).kind, Kind::kRestart);
  const Verdict late = ended_early(exited(1, "timeout", std::chrono::minutes(30)));
  const RestartChoice after_late = choose_restart(rules, {.used = 1, .in_a_row = 1}, late);
  EXPECT_EQ(after_late.history.in_a_row, 1) << "it was healthy for half an hour";
  EXPECT_EQ(choose_restart(rules, after_late.history, late).kind, Kind::kRestart) << "that is no error of the start";
}

TEST(RestartPolicy, AHangIsNoRepeatedErrorThoughARankEndedEarlyEachTime) {
  Verdict hang = ended_early({});
  hang.end.kind = RunEnd::Kind::kHang;
  hang.overruled.reset();
  const RestartRules rules{.most = 3, .repeats_identical = false};
  const RestartChoice first = choose_restart(rules, {}, hang);
  EXPECT_EQ(first.history.last, std::nullopt);
  EXPECT_EQ(choose_restart(rules, first.history, hang).kind, Kind::kRestart);
}

TEST(RestartPolicy, AChangeOfNodesCostsNoRestart) {
  for (const RunEnd::Kind end : {RunEnd::Kind::kNodeLost, RunEnd::Kind::kNodeJoined}) {
    Verdict verdict;
    verdict.end.kind = end;
    const RestartHistory used_up{3, 2, exited(3, "boom")};
    const RestartChoice choice = choose_restart({.most = 3}, used_up, verdict);
    EXPECT_EQ(choice.kind, Kind::kResize);
    EXPECT_TRUE(choice.goes_on());
    EXPECT_EQ(choice.history, used_up);
    EXPECT_EQ(choice.delay, Duration::zero());
  }
}

TEST(RestartPolicy, HistoryReachesNodesThatJoinLater) {
  for (const RestartHistory& history : {RestartHistory{}, RestartHistory{3, 2, exited(3, "boom"), 1, 77}}) {
    EXPECT_EQ(restart_history_from_json(to_json(history)), history);
  }
  for (const char* const bad :
       {"", "{}", R"({"used":-1,"in_a_row":0,"last":"","before_checkpoint":-1,"checkpoint_ns":0})",
        R"({"used":1,"in_a_row":1,"last":"no record","before_checkpoint":0,"checkpoint_ns":0})",
        R"({"used":1,"in_a_row":1,"last":"","before_checkpoint":2,"checkpoint_ns":0})",
        R"({"used":2147483647,"in_a_row":1,"last":"","before_checkpoint":2147483647,"checkpoint_ns":0})"}) {
    EXPECT_FALSE(restart_history_from_json(bad)) << bad;
  }
}

TEST(RestartPolicy, ThreeRestartsAreFourAttempts) {
  const RestartRules rules{.most = 3};
  EXPECT_EQ(after(rules, {exited(1, "a"), exited(1, "b"), exited(1, "c")}).kind, Kind::kRestart);
  const RestartChoice fourth = after(rules, {exited(1, "a"), exited(1, "b"), exited(1, "c"), exited(1, "d")});
  EXPECT_EQ(fourth.kind, Kind::kUsedUp);
  EXPECT_EQ(fourth.history.used, 3);
}

/// Attempts that fail in the same way, after each of which the newest checkpoint is of this time.
RestartChoice after_checkpoints(const RestartRules& rules, const std::vector<std::int64_t>& times) {
  RestartChoice choice;
  for (const std::int64_t time : times) {
    Verdict verdict = failed(exited(1, "boom"));
    verdict.checkpoint_ns = time;
    choice = choose_restart(rules, choice.history, verdict);
  }
  return choice;
}

TEST(RestartPolicy, RestartsAreCountedSinceTheNewestCheckpoint) {
  const RestartRules rules{.most = 2};
  EXPECT_EQ(after_checkpoints(rules, {0, 0}).kind, Kind::kRestart);
  EXPECT_EQ(after_checkpoints(rules, {0, 0, 0}).kind, Kind::kUsedUp) << "there never was one";
  EXPECT_EQ(after_checkpoints(rules, {5, 5, 5}).kind, Kind::kUsedUp) << "it was there before";
  EXPECT_EQ(after_checkpoints(rules, {5, 6, 6}).kind, Kind::kRestart);
  EXPECT_EQ(after_checkpoints(rules, {5, 6, 6, 6}).kind, Kind::kUsedUp);
  EXPECT_EQ(after_checkpoints(rules, {5, 6, 6, 0}).kind, Kind::kUsedUp) << "one that was not seen is not new";
  EXPECT_EQ(after_checkpoints(rules, {5, 6, 4, 5}).kind, Kind::kUsedUp) << "an older one is no progress";
  const RestartChoice seventh = after_checkpoints(rules, {1, 2, 3, 4, 5, 6, 6});
  EXPECT_EQ(seventh.kind, Kind::kRestart);
  EXPECT_EQ(seventh.history.used, 7);
  EXPECT_EQ(seventh.history.since_checkpoint(), 2);
}

TEST(RestartPolicy, TheSameErrorAfterANewCheckpointIsTriedAgain) {
  const RestartRules rules{.most = 9, .repeats_identical = false};
  EXPECT_EQ(after_checkpoints(rules, {5, 6, 7}).kind, Kind::kRestart);
  EXPECT_EQ(after_checkpoints(rules, {5, 6, 6}).kind, Kind::kRepeats);
}

TEST(RestartPolicy, TheFirstRestartDoesNotWaitAndTheOthersWaitLongerAndLonger) {
  const RestartRules rules{.most = 100, .backoff = Duration(1000)};
  std::vector<FailureRecord> failures;
  std::vector<Duration::rep> delays;
  for (int i = 0; i < 12; ++i) {
    failures.push_back(exited(1, std::string(static_cast<std::size_t>(i) + 1, 'x')));
    delays.push_back(after(rules, failures).delay.count());
  }
  const std::vector<Duration::rep> expected{0,      1000,   2000,    4000,    8000,    16'000,
                                            32'000, 64'000, 128'000, 256'000, 300'000, 300'000};
  EXPECT_EQ(delays, expected);
}

TEST(RestartPolicy, AHealthyAttemptBeginsTheDelaysAnew) {
  const RestartRules rules{.most = 100, .backoff = Duration(1000)};
  const FailureRecord late = exited(1, "late", kHealthy);
  EXPECT_EQ(after(rules, {exited(1, "a"), exited(1, "b"), late}).delay, Duration(0));
  EXPECT_EQ(after(rules, {exited(1, "a"), exited(1, "b"), late}).history.used, 3) << "but it is counted";
}

TEST(RestartPolicy, ANewerCheckpointMakesTheDelayTheShortestAgain) {
  const RestartRules rules{.most = 100, .backoff = Duration(1000)};
  EXPECT_EQ(after_checkpoints(rules, {5}).delay, Duration(0));
  EXPECT_EQ(after_checkpoints(rules, {5, 5, 5, 5}).delay, Duration(4000));
  EXPECT_EQ(after_checkpoints(rules, {5, 5, 5, 5, 6}).delay, Duration(1000));
  EXPECT_EQ(after_checkpoints(rules, {5, 6, 7, 8, 9}).delay, Duration(1000)) << "a program may fail after each";
  EXPECT_EQ(after_checkpoints(rules, {5, 6, 7, 7}).delay, Duration(2000));
}

TEST(RestartPolicy, ALongBackoffOfTheUsersIsNotCut) {
  const RestartRules rules{.most = 9, .backoff = std::chrono::minutes(20)};
  EXPECT_EQ(after(rules, {exited(1, "a"), exited(1, "b"), exited(1, "c")}).delay, std::chrono::minutes(20));
}

TEST(RestartPolicy, WhatFailedTwiceInTheSameWayWhileItStartedIsNotTriedAgain) {
  const RestartRules rules{.most = 9, .repeats_identical = false};
  const FailureRecord error = exited(1, "ModuleNotFoundError: No module named 'x'");
  EXPECT_EQ(after(rules, {error}).kind, Kind::kRestart);
  EXPECT_EQ(after(rules, {error, error}).kind, Kind::kRepeats);
  EXPECT_EQ(after(rules, {error, exited(1, "another"), error}).kind, Kind::kRestart) << "not twice in a row";
  EXPECT_EQ(after({.most = 9, .repeats_identical = true}, {error, error}).kind, Kind::kRestart) << "as torchrun does";
}

TEST(RestartPolicy, NumbersDoNotMakeAnErrorAnotherOne) {
  EXPECT_TRUE(
      is_same_start_up_error(exited(1, "address 127.0.0.1:40123 in use"), exited(1, "address 127.0.0.1:9 in use")));
  EXPECT_FALSE(is_same_start_up_error(exited(1, "a"), exited(2, "a")));
  EXPECT_FALSE(is_same_start_up_error(exited(1, "a"), exited(1, "b")));
}

TEST(RestartPolicy, WithoutAnErrorTheLastLineDecides) {
  FailureRecord before = exited(1, "");
  FailureRecord now = exited(1, "");
  EXPECT_TRUE(is_same_start_up_error(before, now));
  before.evidence = {"loading", "no such file: a"};
  now.evidence = {"no such file: b"};
  EXPECT_FALSE(is_same_start_up_error(before, now));
}

TEST(RestartPolicy, ALateFailureAndOneFromOutsideAreNeverTheSame) {
  EXPECT_FALSE(is_same_start_up_error(exited(1, "a"), exited(1, "a", kStartUp)));
  EXPECT_FALSE(is_same_start_up_error(killed_by(SIGKILL), killed_by(SIGKILL)));
  EXPECT_TRUE(is_same_start_up_error(killed_by(SIGSEGV), killed_by(SIGSEGV)));
}

}  // namespace
}  // namespace lrun::launcher
