#include "verdict/judge.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

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
  EXPECT_EQ(verdict.succeeded, 2);
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

TEST(Judge, GivesTheShellsCodesForAProgramThatCannotRun) {
  const auto code = [](int error) {
    return judge({Kind::kStartFailed}, {ended(0, Ending::kExecFailed, error, 1)}).exit_code;
  };
  EXPECT_EQ(code(ENOENT), 127);
  EXPECT_EQ(code(EACCES), 126);
  EXPECT_EQ(code(ENOEXEC), 126);
  EXPECT_EQ(code(ENOMEM), 125);
}

}  // namespace
}  // namespace lrun
