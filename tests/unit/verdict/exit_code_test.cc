#include "verdict/exit_code.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "verdict/judge.h"

namespace lrun {
namespace {

using Ending = FailureRecord::Ending;
using Kind = RunEnd::Kind;

int code_of(Kind kind, Ending ending, int value) {
  Verdict verdict;
  verdict.end = {kind};
  verdict.culprit.emplace();
  verdict.culprit->ending = ending;
  verdict.culprit->value = value;
  decide_code(verdict);
  return verdict.exit_code;
}

TEST(ExitCode, IsTheShellsForAProgramThatCannotRun) {
  const auto code = [](int error) { return code_of(Kind::kStartFailed, Ending::kExecFailed, error); };
  EXPECT_EQ(code(ENOENT), 127);
  EXPECT_EQ(code(EACCES), 126);
  EXPECT_EQ(code(ENOEXEC), 126);
  EXPECT_EQ(code(ETXTBSY), 126);
  EXPECT_EQ(code(E2BIG), 126);
  EXPECT_EQ(code(ENOMEM), 125);
}

TEST(ExitCode, IsOneForALostWorker) { EXPECT_EQ(code_of(Kind::kWorkerFailed, Ending::kLost, 0), 1); }

}  // namespace
}  // namespace lrun
