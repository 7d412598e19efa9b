#include "report/torchrun_summary.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lrun::launcher {
namespace {

std::string no_account(const FailureRecord&) { return {}; }

TEST(TorchrunSummary, ListsTheVictimsAndThenTheRootCause) {
  FailureRecord culprit;
  culprit.node = "localhost";
  culprit.rank = culprit.local_rank = 1;
  culprit.pid = 15887;
  culprit.value = 7;
  FailureRecord victim;
  victim.node = "localhost";
  victim.pid = 15886;
  victim.ending = FailureRecord::Ending::kSignaled;
  victim.value = SIGTERM;
  victim.stop_signal = SIGTERM;
  const std::string text = torchrun_summary(judge({RunEnd::Kind::kWorkerFailed}, {culprit, victim}), {culprit, victim},
                                            "./f.sh", no_account);
  const auto victim_at = text.find("traceback : Signal 15 (SIGTERM) received by PID 15886");
  const auto root_at = text.find("Root Cause (first observed failure):\n[0]:");
  EXPECT_NE(text.find("./f.sh FAILED"), std::string::npos) << text;
  EXPECT_NE(victim_at, std::string::npos) << text;
  EXPECT_NE(root_at, std::string::npos) << text;
  EXPECT_LT(victim_at, root_at) << text;
  EXPECT_NE(text.find("exitcode  : 7 (pid: 15887)", root_at), std::string::npos) << text;
  EXPECT_NE(text.find("\n" + std::string(60, '=') + "\n"), std::string::npos) << "the border is 60 wide at most";
}

TEST(TorchrunSummary, HasTheFailureForItsRootWhereAnotherRankEndedEarly) {
  FailureRecord early;
  early.rank = 1;
  FailureRecord waited;
  waited.value = 1;
  waited.pid = 15887;
  waited.steady_ns = 10;
  waited.cause = Cause::kPeerLost;
  waited.error = "RuntimeError: [/gloo/transport/tcp/pair.cc:547] Connection closed by peer";
  const std::string text =
      torchrun_summary(judge({RunEnd::Kind::kWorkerFailed}, {early, waited}), {early, waited}, "x", no_account);
  EXPECT_NE(text.find("exitcode  : 1 (pid: 15887)"), std::string::npos) << text;
  EXPECT_NE(text.find("<NO_OTHER_FAILURES>"), std::string::npos) << text;
  const RankPlace waits{"waits in", "wait in", "barrier", true, 1, 0};
  EXPECT_EQ(torchrun_summary(judge({RunEnd::Kind::kTimedOut}, {early}, {waits}), {early}, "x", no_account), "");
}

TEST(TorchrunSummary, ShowsTheCallStackThatAWorkerLeft) {
  FailureRecord culprit;
  culprit.value = 1;
  culprit.error_file = "/logs/attempt_0/0/error.json";
  const std::string text =
      torchrun_summary(judge({RunEnd::Kind::kWorkerFailed}, {culprit}), {culprit}, "x",
                       [](const FailureRecord&) { return "Traceback\n  File \"a.py\"\nValueError: \x1b[2Jbad\n"; });
  EXPECT_NE(text.find("  error_file: /logs/attempt_0/0/error.json\n"
                      "  traceback : Traceback\n"
                      "    File \"a.py\"\n"
                      "  ValueError: bad\n"),
            std::string::npos)
      << text;
}

TEST(TorchrunSummary, SaysThatThereWereNoOthers) {
  FailureRecord culprit;
  culprit.value = 1;
  const std::string text =
      torchrun_summary(judge({RunEnd::Kind::kWorkerFailed}, {culprit}), {culprit}, "x", no_account);
  EXPECT_NE(text.find("  <NO_OTHER_FAILURES>\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace lrun::launcher
