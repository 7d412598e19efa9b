#include "report/runs_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>

#include "report/result_json.h"

namespace lrun::launcher {
namespace {

std::string words_of_result(const Verdict& verdict) { return result_words(result_json("id", verdict, {}, "", "")); }

Verdict failed(FailureRecord::Ending ending, int value) {
  FailureRecord record{.rank = 3};
  record.ending = ending;
  record.value = value;
  return {.end = {.kind = RunEnd::Kind::kWorkerFailed}, .culprit = record};
}

TEST(RunsText, SaysInAFewWordsHowARunEnded) {
  EXPECT_EQ(words_of_result({}), "ok");
  EXPECT_EQ(words_of_result(failed(FailureRecord::Ending::kExited, 1)), "rank 3: exit code 1");
  EXPECT_EQ(words_of_result(failed(FailureRecord::Ending::kSignaled, SIGKILL)), "rank 3: SIGKILL");
  EXPECT_EQ(words_of_result({.end = {.kind = RunEnd::Kind::kInterrupted, .signal_number = SIGINT}}),
            "interrupted: SIGINT");
  EXPECT_EQ(words_of_result({.end = {.kind = RunEnd::Kind::kTimedOut}}), "timed out");
  EXPECT_EQ(words_of_result({.end = {.kind = RunEnd::Kind::kGuardDied}}), "lrun was killed");
  EXPECT_EQ(words_of_result({.end = {.kind = RunEnd::Kind::kLauncherFailed}}), "lrun failed");
  Verdict hang = failed(FailureRecord::Ending::kSignaled, SIGSTOP);
  hang.end.kind = RunEnd::Kind::kHang;
  EXPECT_EQ(words_of_result(hang), "hang: rank 3: SIGSTOP");
}

TEST(RunsText, SaysThatLrunWasKilledWithoutAResult) {
  EXPECT_EQ(result_words(std::nullopt), "lrun was killed");
  EXPECT_EQ(result_words("{}"), "lrun was killed");
  EXPECT_EQ(result_words(R"({"reason": 1, "culprit": null, "signal": 0})"), "lrun was killed");
}

TEST(RunsText, IsALineForEachRunBelowTheNamesOfTheColumns) {
  const RunSummary ok{.id = "20260102-030405-abcdef",
                      .started_ms = 1'767'323'045'000,
                      .took_ms = 12'300,
                      .world_size = 16,
                      .result = "ok",
                      .argv = {"./train", "my run"}};
  const RunSummary killed{.id = "20260102-030406-ghijkl", .result = "lrun was killed\x1b[2J"};
  EXPECT_EQ(runs_text({ok, killed}),
            "RUN                     BEGAN (UTC)       TOOK   WORKERS  RESULT           COMMAND\n"
            "20260102-030405-abcdef  2026-01-02 03:04  12.3s  16       ok               ./train 'my run'\n"
            "20260102-030406-ghijkl  -                 -      -        lrun was killed  \n");
}

TEST(RunsText, HidesSecretsOfTheCommand) {
  const RunSummary run{.id = "a", .result = "ok", .argv = {"train.py", "--api-key", "sesame"}};
  EXPECT_EQ(runs_text({run}).find("sesame"), std::string::npos) << runs_text({run});
  EXPECT_NE(runs_text({run}).find("train.py --api-key '***'\n"), std::string::npos) << runs_text({run});
  EXPECT_EQ(nlohmann::json::parse(runs_json({run}))["runs"][0]["argv"][2], "***");
}

TEST(RunsText, OnATerminalHasNoLineThatIsWiderThanIt) {
  const RunSummary run{.id = "20260102-030405-abcdef",
                       .started_ms = 1'767'323'045'000,
                       .took_ms = 12'300,
                       .world_size = 16,
                       .result = "rank 3: SIGKILL",
                       .argv = {"python", "train.py", "--epochs", "10"}};
  const std::string whole =
      "RUN                     BEGAN (UTC)       TOOK   WORKERS  RESULT           COMMAND\n"
      "20260102-030405-abcdef  2026-01-02 03:04  12.3s  16       rank 3: SIGKILL  python train.py --epochs 10\n";
  EXPECT_EQ(runs_text({run}), whole);
  EXPECT_EQ(runs_text({run}, 103), whole);
  EXPECT_EQ(runs_text({run}, 98),
            "RUN                     BEGAN (UTC)       TOOK   WORKERS  RESULT           COMMAND\n"
            "20260102-030405-abcdef  2026-01-02 03:04  12.3s  16       rank 3: SIGKILL  train.py --epochs 10\n");
  EXPECT_EQ(runs_text({run}, 80),
            "RUN                     TOOK   WORKERS  RESULT           COMMAND\n"
            "20260102-030405-abcdef  12.3s  16       rank 3: SIGKILL  train.py --epochs 10\n");
  EXPECT_EQ(runs_text({run}, 26), "RUN                     T…\x1b[0m\n20260102-030405-abcdef  1…\x1b[0m\n");
}

TEST(RunsText, NamesTheProgramWhereItsFolderHasNoRoom) {
  const RunSummary run{
      .id = "a", .result = "ok", .argv = {"/opt/venv/bin/python", "-u", "/home/me/train.py", "--lr=1"}};
  EXPECT_EQ(runs_text({run}, 60),
            "RUN  TOOK  WORKERS  RESULT  COMMAND\n"
            "a    -     -        ok      train.py --lr=1\n");
}

TEST(RunsText, KeepsTheValuesOfACommandThatIsShortened) {
  RunSummary run{.id = "a", .result = "ok", .argv = {"/opt/venv/bin/python", "-u", "src/train.py", "/data/x"}};
  run.argv.insert(run.argv.end(), {"--ratio", "1/2", "data.root=/data/x", "s3://b/k"});
  EXPECT_EQ(runs_text({run}, 88),
            "RUN  BEGAN (UTC)  TOOK  WORKERS  RESULT  COMMAND\n"
            "a    -            -     -        ok      train.py x --ratio 1/2 data.root=/data/x s3://…\n");
}

TEST(RunsText, HasAColumnForJobsWhereARunHasOne) {
  EXPECT_EQ(runs_text({{.id = "a", .result = "ok", .job = "31.0"}, {.id = "b", .result = "ok"}}),
            "RUN  JOB   BEGAN (UTC)  TOOK  WORKERS  RESULT  COMMAND\n"
            "a    31.0  -            -     -        ok      \n"
            "b    -     -            -     -        ok      \n");
}

TEST(RunsText, IsJsonForPrograms) {
  const auto json = nlohmann::json::parse(runs_json({{.id = "a", .world_size = 2, .result = "ok", .argv = {"\xff"}}}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["runs"][0]["run_id"], "a");
  EXPECT_EQ(json["runs"][0]["world_size"], 2);
  EXPECT_EQ(json["runs"][0]["result"], "ok");
  EXPECT_EQ(json["runs"][0]["argv"][0], "\uFFFD");
}

}  // namespace
}  // namespace lrun::launcher
