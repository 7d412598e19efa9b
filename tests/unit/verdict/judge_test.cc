#include "verdict/judge.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <limits>

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

TEST(Judge, GivesTheShellsCodesForAProgramThatCannotRun) {
  const auto code = [](int error) {
    return judge({Kind::kStartFailed}, {ended(0, Ending::kExecFailed, error, 1)}).exit_code;
  };
  EXPECT_EQ(code(ENOENT), 127);
  EXPECT_EQ(code(EACCES), 126);
  EXPECT_EQ(code(ENOEXEC), 126);
  EXPECT_EQ(code(ETXTBSY), 126);
  EXPECT_EQ(code(E2BIG), 126);
  EXPECT_EQ(code(ENOMEM), 125);
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

TEST(Judge, ExitsWithOneForALostWorker) {
  EXPECT_EQ(judge({Kind::kWorkerFailed}, {ended(0, Ending::kLost, 0, 1)}).exit_code, 1);
}

}  // namespace
}  // namespace lrun
