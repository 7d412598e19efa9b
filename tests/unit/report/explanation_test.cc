#include "report/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>

#include "report/result_json.h"

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Fate = WorkerSpan::Fate;

constexpr const char* kRun = "20260102-030405-abcdef";

WorkerSpan ended(int rank, std::string ending, Fate fate, int round = 0) {
  return {.rank = rank, .attempt = round, .round = round, .ended_ms = 3000, .ending = std::move(ending), .fate = fate};
}

FailureRecord a_culprit() {
  FailureRecord record{.node = "node1", .rank = 1, .value = 1};
  record.cause = Cause::kOwnError;
  record.error = "ValueError: boom";
  record.location = "a.py:3 in step";
  record.logs = "/logs/attempt_0/1";
  return record;
}

KnownOfRun a_failed_run(const std::string& text = "lrun: error: rank 1 failed: ValueError: boom\n  | raise it\n") {
  Timeline timeline{.argv = {"a.py", "--api-key", "sesame"}, .world_size = 3, .started_ms = 1000};
  timeline.ended_ms = 3000;
  timeline.workers = {ended(0, "stopped by lrun: SIGTERM", Fate::kStopped),
                      ended(1, "exited with code 1", Fate::kFailed),
                      ended(2, "stopped by lrun: SIGTERM", Fate::kStopped)};
  const Verdict verdict{.end = {.kind = RunEnd::Kind::kWorkerFailed}, .culprit = a_culprit(), .exit_code = 1};
  return {.id = kRun,
          .timeline = timeline,
          .result_json = result_json(kRun, verdict, {}, text, "mend it"),
          .log = "/logs/attempt_0/1/stderr.log",
          .log_line = 17,
          .now_ms = 186'000};
}

TEST(Explanation, OfAFailedRunIsThisText) {
  EXPECT_EQ(explanation_text(explanation_of(a_failed_run())),
            "run 20260102-030405-abcdef, ended 3m03s ago: worker failed, exit code 1 after 2.0s; 3 workers: a.py "
            "--api-key '***'\n"
            "error: rank 1 failed: ValueError: boom\n"
            "  | raise it\n"
            "others: ranks 0,2: stopped by lrun: SIGTERM\n"
            "log: /logs/attempt_0/1/stderr.log:17\n"
            "next: lrun logs 20260102-030405-abcdef 1 --tail 50\n");
}

TEST(Explanation, HasTheSameForPrograms) {
  const auto json = nlohmann::json::parse(explanation_json(explanation_of(a_failed_run())));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["state"], "ended");
  EXPECT_EQ(json["reason"], "worker_failed");
  EXPECT_EQ(json["rank"], 1);
  EXPECT_EQ(json["host"], "node1");
  EXPECT_EQ(json["cause"], "own_error");
  EXPECT_EQ(json["error"], "ValueError: boom");
  EXPECT_EQ(json["place"], "a.py:3 in step");
  EXPECT_EQ(json["log_line"], 17);
  EXPECT_EQ(json["hint"], "mend it");
  EXPECT_EQ(json["took_ms"], 2000);
}

TEST(Explanation, TellsHowEarlierAttemptsEnded) {
  KnownOfRun run = a_failed_run();
  run.timeline->workers.clear();
  for (int round = 0; round < 8; ++round) {
    run.timeline->workers.push_back(ended(1, "exited with code 7", Fate::kFailed, round));
  }
  const Explanation explanation = explanation_of(run);
  EXPECT_THAT(explanation.tried,
              ElementsAre("2 earlier attempts", "attempt 2: rank 1: exited with code 7",
                          "attempt 3: rank 1: exited with code 7", "attempt 4: rank 1: exited with code 7",
                          "attempt 5: rank 1: exited with code 7", "attempt 6: rank 1: exited with code 7"));
  EXPECT_THAT(explanation.others, IsEmpty()) << "only the last attempt's, and not the culprit";
}

TEST(Explanation, NamesTheRankThatFailedFirstInAnEarlierAttempt) {
  KnownOfRun run = a_failed_run();
  run.timeline->workers = {ended(0, "exited with code 5", Fate::kFailed), ended(1, "exited with code 7", Fate::kFailed),
                           ended(1, "exited with code 7", Fate::kFailed, 1)};
  run.timeline->workers[0].ended_order = 9;
  run.timeline->workers[1].ended_order = 8;
  EXPECT_THAT(explanation_of(run).tried, ElementsAre("attempt 0: rank 1: exited with code 7"));
}

TEST(Explanation, SaysThatNodesChangedOnlyWhereTheNextAttemptIsNotCounted) {
  KnownOfRun run = a_failed_run();
  const std::string stopped = "stopped by lrun: SIGTERM";
  run.timeline->workers = {ended(0, stopped, Fate::kStopped, 0), ended(0, stopped, Fate::kStopped, 1),
                           ended(0, stopped, Fate::kStopped, 2)};
  run.timeline->workers[2].attempt = 1;
  EXPECT_THAT(explanation_of(run).tried,
              ElementsAre("attempt 0: all were stopped", "attempt 1: the nodes of the job have changed"));
}

TEST(Explanation, RepeatsOnlyARunThatIsNoMistakeAndCanBeRepeated) {
  const auto next_after = [](RunEnd::Kind kind, bool can_repeat) {
    const std::string result = result_json(kRun, {.end = {.kind = kind}}, {}, "", "");
    return explanation_of({.id = kRun, .result_json = result, .can_repeat = can_repeat}).next;
  };
  EXPECT_THAT(next_after(RunEnd::Kind::kInterrupted, true), HasSubstr("lrun again "));
  EXPECT_THAT(next_after(RunEnd::Kind::kInterrupted, false), HasSubstr("lrun report "));
  EXPECT_THAT(next_after(RunEnd::Kind::kStartFailed, true), HasSubstr("lrun report "));
}

TEST(Explanation, KeepsTheCulpritsLinesBeforeThoseOfOthers) {
  std::string text = "lrun: error: rank 1 failed\n";
  for (int line = 0; line < 8; ++line) text += "  | line " + std::to_string(line) + "\n";
  KnownOfRun run = a_failed_run(text);
  for (int rank = 3; rank < 9; ++rank) {
    run.timeline->workers.push_back(ended(rank, std::string(390, 'x') + std::to_string(rank), Fate::kFailed));
    run.timeline->workers.push_back(ended(rank, std::string(390, 'x'), Fate::kFailed, -rank));
  }
  run.log = "/logs/" + std::string(1000, 'l') + "/stderr.log";
  for (const std::string& whole : {explanation_text(explanation_of(run)), explanation_json(explanation_of(run))}) {
    EXPECT_LE(whole.size(), kMostExplanationBytes);
    EXPECT_THAT(whole, AllOf(HasSubstr("  | line 0"), HasSubstr("  | line 7"), HasSubstr(run.log),
                             HasSubstr(explanation_of(run).next)));
  }
}

TEST(Explanation, NamesQuietRanksOfARunThatGoesOn) {
  KnownOfRun run{.id = kRun, .alive = true, .timeline = a_failed_run().timeline, .now_ms = 61'000};
  run.statuses = {{.run_id = kRun,
                   .argv = {"a.py", "--token=sesame"},
                   .world_size = 3,
                   .phase = "running",
                   .workers = {{.rank = 0, .quiet_ms = 1000}, {.rank = 1, .quiet_ms = 45'000}, {.rank = 2}}}};
  const Explanation explanation = explanation_of(run);
  EXPECT_EQ(explanation.state, "running");
  EXPECT_EQ(explanation.quiet, "rank 1 for 45.0s");
  EXPECT_EQ(explanation.next, "lrun stack --brief 20260102-030405-abcdef");
  EXPECT_EQ(explanation.exit_code, -1);
  EXPECT_THAT(explanation_text(explanation), Not(HasSubstr("sesame")));
  run.statuses[0].workers[1].quiet_ms = 2000;
  EXPECT_EQ(explanation_of(run).next, "lrun status 20260102-030405-abcdef");
}

TEST(Explanation, OfARunThatWaitsOrWasKilledSaysSo) {
  EXPECT_EQ(explanation_of({.id = kRun, .alive = true}).state, "waiting");
  const Explanation killed = explanation_of({.id = kRun});
  EXPECT_EQ(killed.reason, "guard_died");
  EXPECT_THAT(killed.text, ElementsAre("note: the run has no result: lrun was killed"));
  EXPECT_EQ(killed.next, "lrun report 20260102-030405-abcdef") << "nothing is known to be typed again";
  EXPECT_THAT(explanation_of({.id = kRun, .result_json = "{}"}).text, ElementsAre(HasSubstr("another version")));
}

TEST(Explanation, IsBoundedForTextsOfAnyone) {
  std::string text;
  for (int line = 0; line < 200; ++line)
    text += "  | \x1b[2J\xff\"\\\x01 password=hunter2 " + std::string(900, '"') + "\n";
  KnownOfRun run = a_failed_run(text);
  run.timeline->argv = {std::string(5000, '\''), "\x1b]0;title\x07"};
  run.log = std::string(5000, '"');
  run.timeline->workers.clear();
  for (int rank = 0; rank < 100; ++rank) {
    run.timeline->workers.push_back(
        ended(rank, std::string(500, '"') + std::to_string(rank), Fate::kFailed, rank / 50));
  }
  for (const std::string& whole : {explanation_text(explanation_of(run)), explanation_json(explanation_of(run))}) {
    EXPECT_LE(whole.size(), kMostExplanationBytes);
    EXPECT_THAT(whole, Not(HasSubstr("hunter2")));
    EXPECT_EQ(whole.find('\x1b'), std::string::npos);
    EXPECT_EQ(whole.find('\xff'), std::string::npos);
  }
  const auto json = nlohmann::json::parse(explanation_json(explanation_of(run)));
  EXPECT_EQ(json["rank"], 1);
  EXPECT_EQ(json["next"], "lrun logs 20260102-030405-abcdef 1 --tail 50");
}

TEST(Explanation, FindsTheLastHintOfAText) {
  EXPECT_EQ(hint_in("lrun: error: no\nlrun: hint: one\nlrun: hint: two\n"), "two");
  EXPECT_EQ(hint_in("lrun: error: no\n"), "");
}

TEST(Explanation, FindsTheLastLineThatHasAText) {
  EXPECT_EQ(last_line_with("a\nboom\nb\nboom\n", "boom"), 4);
  EXPECT_EQ(last_line_with("boom", "boom"), 1);
  EXPECT_EQ(last_line_with("boom", ""), 0);
  EXPECT_EQ(last_line_with(std::string(std::size_t{2} << 20U, '\n') + "boom\n", "boom"), (2 << 20) + 1);
  EXPECT_EQ(last_line_with("boom" + std::string(std::size_t{2} << 20U, '\n'), "boom"), 0) << "it went on after that";
  EXPECT_EQ(last_line_with("", "boom"), 0);
}

}  // namespace
}  // namespace lrun::launcher
