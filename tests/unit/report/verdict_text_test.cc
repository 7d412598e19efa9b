#include "report/verdict_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace lrun::launcher {
namespace {

FailureRecord failed(int rank) {
  FailureRecord record;
  record.node = "host";
  record.rank = rank;
  record.local_rank = rank;
  record.pid = 4242;
  record.lifetime_ms = 412;
  record.value = 3;
  record.evidence = {"Traceback", "ValueError: boom"};
  return record;
}

TEST(StoppingText, CountsTheNodesOfTheWorkersThatStillRun) {
  const auto text = [](RunningWorkers others) {
    return stopping_text({RunEnd::Kind::kRequested}, nullptr, others, {.grace = Duration(30'000)});
  };
  EXPECT_EQ(text({35, 36}), "lrun: note: asked to stop; stopping 35 workers (up to 30s)\n") << "not on all of them";
  EXPECT_EQ(text({36, 9}), "lrun: note: asked to stop; stopping 36 workers on 9 nodes (up to 30s)\n");
}

TEST(StoppingText, NamesTheCauseAndWhatHappensNow) {
  const FailureRecord cause = failed(1);
  EXPECT_EQ(stopping_text({RunEnd::Kind::kWorkerFailed}, &cause, {7}, {.grace = Duration(30'000)}),
            "lrun: error: rank 1 exited with code 3\n"
            "lrun: note: stopping 7 other workers (up to 30s)\n");
}

TEST(StoppingText, SaysHowToSkipTheWaitAfterCtrlC) {
  EXPECT_EQ(stopping_text({RunEnd::Kind::kInterrupted, SIGINT}, nullptr, {2}, {.grace = Duration(30'000)}),
            "lrun: note: received SIGINT; stopping 2 workers (up to 30s); Ctrl-C again kills at once\n");
}

TEST(StoppingText, OfAHangSaysWhereTheRanksWereOnNodesThatDidNotShowTheirStacks) {
  RunEnd hang{.kind = RunEnd::Kind::kHang, .limit_ms = 10'000, .who = "rank 0 waits in recv"};
  EXPECT_EQ(stopping_text(hang, nullptr, {0}, {}),
            "lrun: note: no worker made progress for the 10s of --hang-timeout\n");
  hang.node = "b";
  EXPECT_EQ(stopping_text(hang, nullptr, {0}, {}),
            "lrun: note: node b: no worker made progress for the 10s of --hang-timeout: rank 0 waits in recv\n");
}

TEST(StoppingText, NamesTheNodeOfASignalThatDidNotComeToAll) {
  RunEnd end{.kind = RunEnd::Kind::kInterrupted, .signal_number = SIGINT, .node = "b", .node_rank = 1};
  EXPECT_EQ(reason_text(end), "node b: received SIGINT");
  end.by_head = true;
  EXPECT_EQ(reason_text(end), "received SIGINT") << "whoever heard of it first";
}

TEST(VerdictText, BeginsWithTheCauseShowsTheLastLinesAndCountsTheOthers) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(1);
  verdict.others = {.stopped_by_signal = 2, .killed = 1};
  verdict.end.grace_expired = true;
  EXPECT_EQ(verdict_text(verdict, {.grace = Duration(30'000), .logs = "/logs/attempt_0"}),
            "lrun: error: rank 1 exited with code 3\n"
            "lrun: note: rank 1 printed last:\n"
            "  | Traceback\n"
            "  | ValueError: boom\n"
            "lrun: note: rank 1 ran for 0.4s (local rank 1, pid 4242 on host); 3 other workers: 2 ended when asked to "
            "and 1 had "
            "to be killed after 30s; logs: /logs/attempt_0\n");
}

TEST(VerdictText, SaysThatANodesEndIsNotKnown) {
  Verdict verdict;
  verdict.end = {.kind = RunEnd::Kind::kLauncherFailed, .who = "the result of one node is not known"};
  verdict.others.succeeded = 2;
  EXPECT_EQ(verdict_text(verdict, {}),
            "lrun: error: the run was stopped: the result of one node is not known\n"
            "lrun: note: 2 workers had succeeded\n");
}

TEST(VerdictText, StaysWithinFifteenLinesHoweverMuchWasPrinted) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(0);
  verdict.culprit->evidence = std::vector<std::string>(300, std::string(1000, 'x'));
  verdict.others.stopped_by_signal = 63;
  EXPECT_NE(verdict_text(verdict, {.logs = "/logs", .logs_host = "a"}).find("logs on a: /logs"), std::string::npos);
  const std::string text = verdict_text(verdict, {.logs = "/logs"});
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 15) << text;
}

TEST(VerdictText, BeginsWithTheWorkersOwnErrorAndHintsAtItsCure) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(1);
  verdict.culprit->cause = Cause::kOwnError;
  verdict.culprit->error = "ModuleNotFoundError: No module named 'einops'";
  verdict.culprit->location = "train.py:2";
  verdict.culprit->evidence = {"  File \"train.py\", line 2, in <module>", verdict.culprit->error};
  verdict.culprit->error_file = "/logs/1/error.json";
  EXPECT_EQ(verdict_text(verdict, {}),
            "lrun: error: rank 1 failed: ModuleNotFoundError: No module named 'einops' at train.py:2 (exit 3)\n"
            "lrun: note: rank 1 left in /logs/1/error.json:\n"
            "  |   File \"train.py\", line 2, in <module>\n"
            "  | ModuleNotFoundError: No module named 'einops'\n"
            "lrun: note: rank 1 ran for 0.4s (local rank 1, pid 4242 on host)\n"
            "lrun: hint: install it for the Python that runs the program, or put its folder on PYTHONPATH; 'which "
            "python3' shows which one runs\n");
}

TEST(VerdictText, ShowsNoLineTwice) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(1);
  verdict.culprit->error = "free(): invalid pointer";
  verdict.culprit->evidence = {"free(): invalid pointer"};
  EXPECT_EQ(verdict_text(verdict, {}),
            "lrun: error: rank 1 failed: free(): invalid pointer (exit 3)\n"
            "lrun: note: rank 1 ran for 0.4s (local rank 1, pid 4242 on host)\n");
}

TEST(VerdictText, SaysWhyTheFirstDeathIsNotTheCause) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(6);
  verdict.culprit->evidence.clear();
  verdict.overruled = failed(2);
  verdict.overruled->ending = FailureRecord::Ending::kSignaled;
  verdict.overruled->value = SIGABRT;
  verdict.overruled->cause = Cause::kWatchdogAbort;
  verdict.others.failed = 1;
  EXPECT_EQ(verdict_text(verdict, {}),
            "lrun: error: rank 6 exited with code 3\n"
            "lrun: note: rank 2 ended first and died of SIGABRT (abort): it gave up waiting for the "
            "other ranks; that makes it a victim, not the cause\n"
            "lrun: note: rank 6 ran for 0.4s (local rank 6, pid 4242 on host); 1 other worker failed with it\n"
            "lrun: hint: it printed no reason: look for exit(3) in the program\n");
  verdict.overruled->cause = Cause::kOwnError;
  EXPECT_NE(verdict_text(verdict, {}).find("; the error file of rank 6 is older\n"), std::string::npos);
}

TEST(VerdictText, OfASilentExitNamesTheCallToLookFor) {
  FailureRecord silent = failed(1);
  silent.evidence.clear();
  EXPECT_EQ(hint_text(silent, {}), "it printed no reason: look for exit(3) in the program");
  EXPECT_EQ(hint_text(silent, {.sees_output = false}), "") << "it may have printed one";
  silent.value = 255;
  EXPECT_EQ(hint_text(silent, {}), "it printed no reason; 255 is the code of exit(-1), too");
  silent.evidence = {"bad batch"};
  EXPECT_EQ(hint_text(silent, {}), "");
}

TEST(VerdictText, ShowsNothingThatCouldMoveTheCursor) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(1);
  verdict.culprit->error = "ValueError: \x1b[2J\x07";
  verdict.culprit->evidence = {"a\x1b[2Jb\r"};
  const std::string text = verdict_text(verdict, {});
  EXPECT_EQ(text.find_first_of("\x1b\x07\r"), std::string::npos) << text;
}

TEST(VerdictText, RepeatsNothingThatIsStillOnTheScreen) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(1);
  const std::string cause = "lrun: error: " + cause_text(*verdict.culprit) + "\n";
  const std::string evidence = "lrun: note: rank 1 printed last:\n  | Traceback\n  | ValueError: boom\n";
  const std::string rest = "lrun: note: rank 1 ran for 0.4s (local rank 1, pid 4242 on host)\n";
  EXPECT_EQ(verdict_text(verdict, {}), cause + evidence + rest);
  EXPECT_EQ(verdict_text(verdict, {.cause_on_screen = true}), evidence + rest);
  EXPECT_EQ(verdict_text(verdict, {.evidence_on_screen = true}), cause + rest);
  EXPECT_EQ(verdict_text(verdict, {.cause_on_screen = true, .evidence_on_screen = true}), rest);
}

TEST(VerdictText, SaysNothingAboutSuccess) { EXPECT_EQ(verdict_text({}, {}), ""); }

TEST(VerdictText, HintsAtTheCureOfAProgramThatCannotRun) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kStartFailed;
  verdict.culprit = failed(0);
  verdict.culprit->ending = FailureRecord::Ending::kExecFailed;
  verdict.culprit->value = ENOENT;
  EXPECT_EQ(verdict_text(verdict, {.program = "train"}),
            "lrun: error: cannot run 'train': No such file or directory\n"
            "lrun: hint: there is no 'train' on PATH or in this folder\n");
  EXPECT_EQ(verdict_text(verdict, {.program = "train", .is_in_folder = true}),
            "lrun: error: cannot run 'train': it is not on PATH\n"
            "lrun: hint: no 'train' on PATH; the one in this folder is './train'\n");
  verdict.culprit->value = EACCES;
  EXPECT_EQ(verdict_text(verdict, {.program = "./train"}),
            "lrun: error: cannot run './train': Permission denied\n"
            "lrun: hint: 'chmod +x ./train' makes a script or program executable\n");
}

/// Rank 1 ended with 0 after three seconds, and rank 0 lost it.
Verdict early_end() {
  FailureRecord early = failed(1);
  early.value = 0;
  early.evidence.clear();
  early.lifetime_ms = 3100;
  FailureRecord waited = failed(0);
  waited.value = 1;
  waited.cause = Cause::kPeerLost;
  waited.error = "RuntimeError: Connection closed by peer";
  waited.location = "train.py:5";
  waited.evidence = {"    dist.all_reduce(t)", waited.error};
  waited.steady_ns = 10;
  return judge({RunEnd::Kind::kWorkerFailed}, {early, waited});
}

TEST(VerdictText, NamesTheRankThatEndedWithZeroWhileAnotherWaitedForIt) {
  const std::string cause =
      "lrun: error: rank 1 exited with code 0: rank 0 waited for it in all_reduce at train.py:5: did it run fewer "
      "steps?\n";
  EXPECT_EQ(
      verdict_text(early_end(), {.logs = "/logs"}),
      cause +
          "lrun: note: rank 0 then exited with code 1: it lost the connection to another worker: RuntimeError: "
          "Connection closed "
          "by peer\n"
          "lrun: note: rank 1 ran for 3.1s (local rank 1, pid 4242 on host); 1 other worker failed after it; logs: "
          "/logs\n"
          "lrun: hint: give every rank the same number of batches (DistributedSampler, drop_last), or let "
          "ranks end early with Join\n");
  FailureRecord hostile = failed(0);
  hostile.cause = Cause::kEndedEarly;
  hostile.detail = "rank 0 waited for it at \x1b[2Jtrain.py:5";
  EXPECT_EQ(cause_text(hostile).find('\x1b'), std::string::npos);
}

/// A run of two that was stopped after rank 1 had ended with 0.
Verdict stopped_run(const RunEnd& end, const std::vector<RankPlace>& places) {
  FailureRecord early = failed(1);
  early.value = 0;
  early.evidence.clear();
  early.lifetime_ms = 3100;
  FailureRecord other = failed(0);
  other.ending = FailureRecord::Ending::kSignaled;
  other.value = other.stop_signal = SIGTERM;
  return judge(end, {early, other}, places);
}

TEST(VerdictText, SaysForWhomTheRanksWaitedWhenALimitStoppedThem) {
  const RankPlace waits{"waits in", "wait in", "all_reduce at train.py:5", true, 1, 0};
  const RankPlace loads{"runs", "run", "load (data.py:8)", false, 2, 2};
  const RunEnd over{.kind = RunEnd::Kind::kTimedOut, .limit_ms = 10'000};
  const std::string cause =
      "rank 1 exited with code 0: rank 0 waits for it in all_reduce at train.py:5: did it run fewer steps?\n";
  const std::string rest =
      "lrun: note: rank 1 ran for 3.1s (local rank 1, pid 4242 on host); 1 other worker ended when asked to\n"
      "lrun: hint: give every rank the same number of batches (DistributedSampler, drop_last), or let ranks end early "
      "with Join\n";
  EXPECT_EQ(verdict_text(stopped_run(over, {waits}), {}),
            "lrun: error: the run was stopped: the 10s of --timeout are over: " + cause + rest);
  EXPECT_EQ(verdict_text(stopped_run(over, {loads, waits}), {}),
            "lrun: error: the run was stopped: the 10s of --timeout are over\n"
            "lrun: note: seen before the stop: 2 ranks run load (data.py:8); rank 0 waits in all_reduce at train.py:5\n"
            "lrun: note: 2 workers: 1 ended when asked to and 1 had succeeded (rank 1 after 3.1s)\n")
      << "rank 0 may wait for those that load";
  EXPECT_EQ(verdict_text(stopped_run(over, {loads}), {}),
            "lrun: error: the run was stopped: the 10s of --timeout are over\n"
            "lrun: note: seen before the stop: 2 ranks run load (data.py:8)\n"
            "lrun: note: 2 workers: 1 ended when asked to and 1 had succeeded (rank 1 after 3.1s)\n");
  const RunEnd hang{.kind = RunEnd::Kind::kHang, .limit_ms = 10'000, .who = "rank 0 waits in all_reduce"};
  EXPECT_EQ(verdict_text(stopped_run(hang, {waits}), {}),
            "lrun: error: the run was stopped: no worker made progress for the 10s of --hang-timeout: " + cause + rest);
}

TEST(VerdictText, OfAHangKeepsWhereEachRankWas) {
  const RankPlace waits{"waits in", "wait in", "all_reduce at train.py:5", true, 1, 0};
  const RankPlace meets{"waits in", "wait in", "barrier at train.py:9", true, 1, 2};
  const RankPlace reads{"is in", "are in", "read() of a pipe", false, 1, 2};
  const auto text_of = [](const std::vector<RankPlace>& places) {
    const RunEnd hang{.kind = RunEnd::Kind::kHang, .limit_ms = 10'000, .who = describe_places(places)};
    return verdict_text(stopped_run(hang, places), {});
  };
  EXPECT_NE(text_of({waits, reads})
                .find(" of --hang-timeout: rank 0 waits in all_reduce at train.py:5; rank 2 is in read() of a pipe\n"),
            std::string::npos)
      << text_of({waits, reads});
  EXPECT_NE(text_of({waits, meets})
                .find("lrun: note: seen before the stop: rank 0 waits in all_reduce at train.py:5; rank 2 waits in "
                      "barrier at train.py:9\n"),
            std::string::npos)
      << text_of({waits, meets});
}

TEST(VerdictText, ShowsWhereARankWasBesideTheOneThatLostItsPeer) {
  Verdict verdict = early_end();
  verdict.places = {{"is in", "are in", "read() of a pipe", false, 1, 2}};
  const std::string text = verdict_text(verdict, {});
  EXPECT_NE(text.find("lrun: note: seen before the stop: rank 2 is in read() of a pipe\n"), std::string::npos) << text;
}

TEST(VerdictText, NamesTheCoreDumpOfTheFailureAlsoAfterAnEarlyEnd) {
  const std::string text = verdict_text(early_end(), {.core_dump = "/cores/core.4242"});
  EXPECT_NE(text.find("lrun: note: core dump of rank 0: /cores/core.4242\n"), std::string::npos) << text;
}

TEST(VerdictText, AdvisesNoCoreToThoseWhoAskedForOneAndGotNone) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(1);
  verdict.culprit->evidence.clear();
  verdict.culprit->cause = Cause::kOwnError;
  verdict.culprit->value = 128 + SIGSEGV;  // of a shell, which dumped nothing
  EXPECT_NE(verdict_text(verdict, {}).find("'--core'"), std::string::npos) << verdict_text(verdict, {});
  const std::string asked = verdict_text(verdict, {.asked_for_core = true});
  EXPECT_EQ(asked.find("--core"), std::string::npos) << asked;
}

TEST(VerdictText, OfALostPeerSaysWhereTheOthersWere) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(1);
  verdict.culprit->cause = Cause::kWatchdogAbort;
  verdict.others.stopped_by_signal = 1;
  verdict.places = {{"is in", "are in", "read() of a pipe, called from load (data.py:8)", false, 1, 3}};
  const std::string text = verdict_text(verdict, {});
  EXPECT_NE(
      text.find("lrun: note: seen before the stop: rank 3 is in read() of a pipe, called from load (data.py:8)\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("--settle"), std::string::npos) << "the others are known to have lived";
}

TEST(CauseText, OfACrashInPythonIsItsPlaceAndTellsTheSignalOnce) {
  FailureRecord record = failed(1);
  record.ending = FailureRecord::Ending::kSignaled;
  record.value = SIGSEGV;
  record.cause = Cause::kFatalSignal;
  record.error = "Fatal Python error: Segmentation fault";
  record.location = "train.py:40 in step";
  EXPECT_EQ(cause_text(record), "rank 1 died of SIGSEGV (invalid memory access) at train.py:40 in step");
  record.error = "Fatal Python error: Cannot recover from stack overflow.";
  EXPECT_NE(cause_text(record).find(": Fatal Python error: Cannot recover"), std::string::npos);
}

TEST(VerdictText, SaysThatAVictimMayNotBeTheCause) {
  Verdict verdict;
  verdict.end.kind = RunEnd::Kind::kWorkerFailed;
  verdict.culprit = failed(1);
  verdict.culprit->cause = Cause::kPeerLost;
  verdict.others.stopped_by_signal = 1;
  const std::string doubt =
      "lrun: note: rank 1 looks like a victim: another rank may have failed first; '--settle 30s' gives it time to say "
      "so\n";
  EXPECT_NE(verdict_text(verdict, {}).find(doubt), std::string::npos) << verdict_text(verdict, {});
  verdict.culprit->cause = Cause::kOwnError;
  EXPECT_EQ(verdict_text(verdict, {}).find("victim"), std::string::npos);
  verdict.culprit->cause = Cause::kWatchdogAbort;
  for (const int succeeded : {0, 1}) {
    verdict.others = {.succeeded = succeeded};
    EXPECT_EQ(verdict_text(verdict, {}).find("victim"), std::string::npos) << "nobody else can have failed";
  }
}

}  // namespace
}  // namespace lrun::launcher
