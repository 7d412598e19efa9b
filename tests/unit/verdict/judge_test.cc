#include "verdict/judge.h"

#include <gtest/gtest.h>

#include <csignal>
#include <limits>

#include "process/exit_codes.h"

namespace lrun {
namespace {

using Ending = FailureRecord::Ending;
using Kind = RunEnd::Kind;

FailureRecord ended(int rank, Ending ending, int value, std::int64_t when, int stop_signal = 0) {
  FailureRecord record;
  record.rank = rank;
  record.ending = ending;
  record.value = value;
  record.steady_ns = when;
  record.stop_signal = stop_signal;
  return record;
}

TEST(Judge, ASucceededRunHasNoCulpritAndExitsWithZero) {
  const Verdict verdict = judge({Kind::kSucceeded}, {ended(0, Ending::kExited, 0, 1), ended(1, Ending::kExited, 0, 2)});
  EXPECT_EQ(verdict.culprit, std::nullopt);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.others.succeeded, 2);
}

TEST(Judge, BlamesTheFirstThatFailedByItself) {
  const Verdict verdict = judge({Kind::kWorkerFailed}, {
                                                           ended(3, Ending::kExited, 7, 20),
                                                           ended(1, Ending::kSignaled, SIGSEGV, 10),
                                                           ended(0, Ending::kSignaled, SIGTERM, 30, SIGTERM),
                                                           ended(2, Ending::kSignaled, SIGKILL, 40, SIGKILL),
                                                       });
  ASSERT_TRUE(verdict.culprit);
  EXPECT_EQ(verdict.culprit->rank, 1);
  EXPECT_EQ(verdict.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(verdict.failed_later, std::vector<int>{3});
  EXPECT_EQ(verdict.stopped_by_signal, std::vector<int>{0});
  EXPECT_EQ(verdict.killed, std::vector<int>{2});
}

TEST(Judge, BlamesTheLowestRankAmongThoseOfTheSameInstant) {
  const Verdict verdict =
      judge({Kind::kWorkerFailed}, {ended(5, Ending::kExited, 5, 10), ended(2, Ending::kExited, 2, 10)});
  ASSERT_TRUE(verdict.culprit);
  EXPECT_EQ(verdict.culprit->rank, 2);
  EXPECT_EQ(verdict.exit_code, 2);
}

TEST(Judge, NeverBlamesARankThatLrunStopped) {
  const Verdict verdict = judge({Kind::kInterrupted, SIGINT}, {ended(0, Ending::kExited, 1, 10, SIGINT),
                                                               ended(1, Ending::kSignaled, SIGINT, 11, SIGINT)});
  EXPECT_EQ(verdict.culprit, std::nullopt);
  EXPECT_EQ(verdict.die_of_signal, SIGINT);
  EXPECT_EQ(verdict.exit_code, 130);
}

TEST(Judge, CountsAWorkerThatGotTheRunsSignalFromElsewhereAsStoppedByIt) {
  const Verdict verdict = judge({Kind::kInterrupted, SIGTERM},
                                {ended(0, Ending::kSignaled, SIGTERM, 10), ended(1, Ending::kExited, 143, 11),
                                 ended(2, Ending::kSignaled, SIGSEGV, 11)});
  EXPECT_EQ(verdict.others.stopped_by_signal, 2);
  EXPECT_EQ(verdict.others.failed, 1);
  EXPECT_EQ(verdict.failed_later, std::vector<int>{2});
}

FailureRecord victim(int rank, Cause cause, std::int64_t when) {
  FailureRecord record = ended(rank, Ending::kSignaled, SIGABRT, when);
  record.cause = cause;
  return record;
}

TEST(Judge, OverrulesAVictimByALaterErrorOfItsOwn) {
  FailureRecord own = ended(6, Ending::kExited, 1, 20);
  own.cause = Cause::kOwnError;
  const Verdict verdict = judge({Kind::kWorkerFailed}, {victim(2, Cause::kWatchdogAbort, 10), own});
  ASSERT_TRUE(verdict.culprit && verdict.overruled);
  EXPECT_EQ(verdict.culprit->rank, 6);
  EXPECT_EQ(verdict.overruled->rank, 2);
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_EQ(verdict.failed_later, std::vector<int>{2});
}

TEST(Judge, BlamesTheFirstVictimWhenThereIsNobodyElse) {
  const Verdict verdict =
      judge({Kind::kWorkerFailed}, {victim(2, Cause::kPeerLost, 10), victim(1, Cause::kWatchdogAbort, 20)});
  ASSERT_TRUE(verdict.culprit);
  EXPECT_EQ(verdict.culprit->rank, 2);
  EXPECT_EQ(verdict.overruled, std::nullopt);
}

constexpr std::int64_t kAWhile = 1'000'000'000;  // a second

/// What gloo's all_reduce raises in a program of torch.
FailureRecord lost_its_peer(int rank, std::int64_t when) {
  FailureRecord record = ended(rank, Ending::kExited, 1, when);
  record.cause = Cause::kPeerLost;
  record.error = "RuntimeError: [/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4242";
  record.location = "train.py:5";
  record.evidence = {"  File \"train.py\", line 5, in <module>", "    dist.all_reduce(t)", record.error};
  return record;
}

TEST(Judge, BlamesTheRankThatEndedWithZeroWhileAnotherWaitedForIt) {
  const Verdict verdict =
      judge({Kind::kWorkerFailed}, {ended(1, Ending::kExited, 0, 3 * kAWhile), lost_its_peer(0, 4 * kAWhile)});
  ASSERT_TRUE(verdict.culprit && verdict.overruled);
  EXPECT_EQ(verdict.culprit->rank, 1);
  EXPECT_EQ(verdict.culprit->cause, Cause::kEndedEarly);
  EXPECT_EQ(verdict.culprit->describe(),
            "exited with code 0: rank 0 waited for it in all_reduce at train.py:5: did it run fewer steps?");
  EXPECT_EQ(verdict.overruled->rank, 0);
  EXPECT_EQ(verdict.failure()->rank, 0);
  EXPECT_EQ(verdict.exit_code, 1) << "of the one that failed";
  EXPECT_EQ(verdict.failed_later, std::vector<int>{0});
}

TEST(Judge, BlamesTheFirstOfThoseThatEndedWithZeroAndTellsOfTheFirstThatWaited) {
  const Verdict verdict = judge(
      {Kind::kWorkerFailed},
      {ended(3, Ending::kExited, 0, 20), ended(2, Ending::kExited, 0, 10), lost_its_peer(1, 30), lost_its_peer(0, 40)});
  ASSERT_TRUE(verdict.culprit && verdict.overruled);
  EXPECT_EQ(verdict.culprit->rank, 2);
  EXPECT_EQ(verdict.overruled->rank, 1);
  EXPECT_EQ(verdict.others, (Fates{.failed = 2, .succeeded = 1}));
}

TEST(Judge, SeesAnEarlyEndAlsoWhereItsProcessEndedAMomentAfterItsConnections) {
  const auto culprit = [](std::int64_t end) {
    return judge({Kind::kWorkerFailed}, {lost_its_peer(0, 4 * kAWhile), ended(1, Ending::kExited, 0, end)})
        .culprit->rank;
  };
  EXPECT_EQ(culprit(4 * kAWhile + kAWhile / 2), 1);
  EXPECT_EQ(culprit(6 * kAWhile), 0) << "it ran on for long";
}

TEST(Judge, BlamesNoEarlyEndForAnErrorThatIsNotItsConsequence) {
  const FailureRecord early = ended(1, Ending::kExited, 0, 10);
  FailureRecord own = ended(0, Ending::kExited, 1, 20);
  own.cause = Cause::kOwnError;
  own.error = "ValueError: no such metric";
  EXPECT_EQ(judge({Kind::kWorkerFailed}, {early, own}).culprit->rank, 0) << "evaluation on rank 0";
  EXPECT_EQ(judge({Kind::kWorkerFailed}, {early, lost_its_peer(2, 20), own}).culprit->rank, 0);
  FailureRecord crashed = ended(0, Ending::kSignaled, SIGSEGV, 20);
  crashed.cause = Cause::kFatalSignal;
  EXPECT_EQ(judge({Kind::kWorkerFailed}, {early, crashed}).culprit->rank, 0);
  for (const char* const error :
       {"ConnectionResetError: [Errno 104] Connection reset by peer",
        "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by "
        "peer'))"}) {
    FailureRecord upload = lost_its_peer(0, 20);
    upload.error = error;
    EXPECT_EQ(judge({Kind::kWorkerFailed}, {early, upload}).culprit->rank, 0) << error;
  }
  const FailureRecord obeyed = ended(1, Ending::kExited, 0, 10, SIGTERM);
  EXPECT_EQ(judge({Kind::kWorkerFailed}, {obeyed, lost_its_peer(0, 5)}).culprit->rank, 0) << "it was told to end";
}

TEST(Judge, SaysOfARankThatNeverMetTheOthersNothingAboutSteps) {
  FailureRecord waited = lost_its_peer(0, 20);
  waited.cause = Cause::kWatchdogAbort;
  waited.error = "torch.distributed.DistStoreError: wait timeout after 4000ms, keys: /default_pg/0//cpu//0/1";
  waited.evidence = {"    dist.init_process_group(\"gloo\")", waited.error};
  const Verdict verdict = judge({Kind::kWorkerFailed}, {ended(1, Ending::kExited, 0, 10), waited});
  EXPECT_EQ(verdict.culprit->describe(),
            "exited with code 0: rank 0 waited for it in init_process_group at train.py:5");
}

TEST(Judge, BlamesNoEarlyEndWhereNothingSaysThatAnybodyWaitedForIt) {
  FailureRecord at_its_end = lost_its_peer(1, 20);
  at_its_end.error = "torch.distributed.DistNetworkError: Connection reset by peer";
  at_its_end.evidence = {"    dist.destroy_process_group()", at_its_end.error};
  const Verdict verdict = judge({Kind::kWorkerFailed}, {ended(0, Ending::kExited, 0, 10), at_its_end});
  EXPECT_EQ(verdict.culprit->rank, 1) << "rank 0 ended regularly, and with it the store that it held";
  EXPECT_EQ(verdict.culprit->cause, Cause::kPeerLost);
}

TEST(Judge, AsksAboutStepsOnlyWhereACollectiveIsNamed) {
  FailureRecord compiled = lost_its_peer(0, 20);
  compiled.location.clear();
  compiled.evidence = {"terminate called after throwing an instance of 'gloo::IoException'"};
  const Verdict verdict = judge({Kind::kWorkerFailed}, {ended(1, Ending::kExited, 0, 10), compiled});
  EXPECT_EQ(verdict.culprit->describe(), "exited with code 0: rank 0 waited for it in a collective operation");
}

const RankPlace kWaits{"waits in", "wait in", "all_reduce at train.py:5", true, 1, 0};
const RankPlace kEvaluates{"runs", "run", "evaluate (train.py:80)", false, 1, 0};
const RankPlace kReads{"is in", "are in", "read() of a pipe", false, 1, 2};

TEST(Judge, BlamesNoEarlyEndWhereTheRankThatGaveUpMayHaveWaitedForOneThatLives) {
  const FailureRecord early = ended(1, Ending::kExited, 0, 10);
  FailureRecord gave_up = lost_its_peer(0, 20);
  gave_up.cause = Cause::kWatchdogAbort;
  const auto culprit = [&](const std::vector<RankPlace>& places) {
    return judge({Kind::kWorkerFailed}, {early, gave_up}, places).culprit->rank;
  };
  EXPECT_EQ(culprit({kReads}), 0);
  EXPECT_EQ(culprit({kWaits}), 1);
  EXPECT_EQ(culprit({}), 1) << "nobody is left";
  EXPECT_EQ(judge({Kind::kWorkerFailed}, {early, gave_up}, {}, true).culprit->rank, 0) << "nobody has looked yet";
  EXPECT_EQ(
      judge({Kind::kWorkerFailed}, {early, gave_up, ended(2, Ending::kSignaled, SIGTERM, 90, SIGTERM)}).culprit->rank,
      0)
      << "nobody looked";
  EXPECT_EQ(judge({Kind::kWorkerFailed}, {early, lost_its_peer(0, 20)}, {kReads}).culprit->rank, 1)
      << "a connection that is closed is that of a rank that is gone";
}

TEST(Judge, BlamesNoEarlyEndWhereALivingRankIsElsewhere) {
  const std::vector<FailureRecord> records{ended(1, Ending::kExited, 0, 10),
                                           ended(0, Ending::kSignaled, SIGTERM, 90, SIGTERM),
                                           ended(2, Ending::kSignaled, SIGTERM, 90, SIGTERM)};
  for (const Kind kind : {Kind::kTimedOut, Kind::kHang}) {
    const Verdict verdict = judge({kind}, records, {kReads, kWaits});
    EXPECT_FALSE(verdict.culprit) << "rank 0 may wait for rank 2";
    ASSERT_TRUE(verdict.ended_first);
    EXPECT_EQ(verdict.ended_first->rank, 1);
  }
}

TEST(Judge, BlamesAnEarlyEndWhereARunWasStoppedWhileOthersWaited) {
  const std::vector<FailureRecord> records{ended(1, Ending::kExited, 0, 10),
                                           ended(0, Ending::kSignaled, SIGTERM, 90, SIGTERM)};
  const Verdict timed_out = judge({Kind::kTimedOut}, records, {kWaits});
  ASSERT_TRUE(timed_out.culprit);
  EXPECT_EQ(timed_out.culprit->rank, 1);
  EXPECT_EQ(timed_out.culprit->cause, Cause::kEndedEarly);
  EXPECT_EQ(timed_out.failure(), nullptr);
  EXPECT_EQ(timed_out.exit_code, kExitTimedOut);
  const Verdict interrupted = judge({Kind::kInterrupted, SIGINT}, records, {kWaits});
  ASSERT_TRUE(interrupted.culprit);
  EXPECT_EQ(interrupted.die_of_signal, SIGINT);
  const Verdict at_work = judge({Kind::kTimedOut}, records, {kEvaluates});
  EXPECT_FALSE(at_work.culprit) << "rank 0 was at work alone";
  ASSERT_TRUE(at_work.ended_first);
  EXPECT_EQ(at_work.ended_first->rank, 1);
  EXPECT_FALSE(judge({Kind::kConsoleClosed}, records, {kWaits}).culprit);
}

FailureRecord with_error_file(FailureRecord record, std::int64_t time) {
  record.error_time = time;
  record.wall_ns = 2'000'000'000'000'000'000;
  return record;
}

TEST(Judge, BlamesTheOlderErrorFileAlsoOfAWorkerThatLrunHadStopped) {
  const auto late = with_error_file(ended(0, Ending::kExited, 4, 10), 1'700'000'009);
  const auto early = with_error_file(ended(1, Ending::kSignaled, SIGTERM, 20, SIGTERM), 1'700'000'001);
  const Verdict verdict = judge({Kind::kWorkerFailed}, {late, early});
  ASSERT_TRUE(verdict.culprit && verdict.overruled);
  EXPECT_EQ(verdict.culprit->rank, 1);
  EXPECT_EQ(verdict.overruled->rank, 0);
  EXPECT_EQ(verdict.exit_code, 4) << "not that of lrun's own signal";
}

TEST(Judge, BlamesNobodyForTheAnswerToLrunsSignal) {
  const auto first = with_error_file(ended(0, Ending::kExited, 4, 10), 1'700'000'009);
  auto answer = with_error_file(ended(1, Ending::kExited, 1, 20, SIGTERM), 1'700'000'001);
  answer.error = "SignalException: Process 7 got signal: 15";
  const Verdict verdict = judge({Kind::kWorkerFailed}, {first, answer});
  ASSERT_TRUE(verdict.culprit);
  EXPECT_EQ(verdict.culprit->rank, 0);
}

TEST(Judge, ComparesAnErrorFileWithTheDeathOfAWorkerThatLeftNone) {
  auto silent = ended(0, Ending::kExited, 4, 10);
  silent.wall_ns = 1'700'000'005'000'000'000;
  const auto early = with_error_file(ended(1, Ending::kExited, 1, 20), 1'700'000'001);
  EXPECT_EQ(judge({Kind::kWorkerFailed}, {silent, early}).culprit->rank, 1);
}

TEST(Judge, CountsTheKilledThatDoNotEndAsLost) {
  const Verdict verdict =
      judge({Kind::kWorkerFailed}, {ended(0, Ending::kExited, 3, 1), ended(1, Ending::kLost, 0, 9, SIGKILL)});
  EXPECT_EQ(verdict.lost, std::vector<int>{1});
  EXPECT_TRUE(verdict.killed.empty());
  EXPECT_EQ(verdict.exit_code, 3);
}

TEST(Fates, OfReportsThatCountAsManyAsTheyLikeHaveATotal) {
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_EQ((Fates{kMost, kMost, kMost, kMost, kMost}.total()), 5 * std::int64_t{kMost});
}

}  // namespace
}  // namespace lrun
