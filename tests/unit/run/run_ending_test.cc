#include "run/run_ending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <csignal>
#include <stdexcept>

#include "process/exit_codes.h"
#include "support/log_test_support.h"
#include "support/recording_sink.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunEndingTest : public ::testing::Test {
 protected:
  RunEndingTest() {
    record.make_folders(true);
    record.open();
  }

  static FailureRecord failed(int rank, int code) {
    FailureRecord failure;
    failure.node = "here";
    failure.rank = failure.local_rank = rank;
    failure.pid = 100 + rank;
    failure.ending = FailureRecord::Ending::kExited;
    failure.value = code;
    failure.cause = Cause::kOwnError;
    failure.error = "ValueError: bad batch";
    return failure;
  }
  static RunResult result_of(const FailureRecord& failure) {
    RunResult result;
    result.records = {failure};
    result.verdict = judge({RunEnd::Kind::kWorkerFailed}, result.records);
    return result;
  }
  [[nodiscard]] nlohmann::json written() const { return nlohmann::json::parse(content_of(state / "demo/result.json")); }

  EventLoop loop;
  TemporaryFolder state;
  Environment environment = environment_with(
      {{"LRUN_STATE", state.path().string()}, {"TORCHELASTIC_ERROR_FILE", (state / "error.json").string()}});
  LaunchPlan plan = plan_of(request_for("2"), cpu_node());
  RecordingSink sink;
  RunRecord record{loop, plan, environment, sink};
  RunEnding ending{plan, environment, {.program = "./train", .executable = "./train"}, record, sink};
};

TEST_F(RunEndingTest, AFailureIsInTextResultAndErrorFile) {
  const std::string text = ending.write(result_of(failed(1, 3)));
  EXPECT_THAT(text, HasSubstr("rank 1"));
  EXPECT_THAT(text, HasSubstr("ValueError: bad batch"));
  EXPECT_EQ(written().at("exit_code"), 3);
  EXPECT_EQ(written().at("text"), text) << "without colour they are the same";
  EXPECT_THAT(content_of(state / "error.json"), HasSubstr("ValueError: bad batch"));
  EXPECT_EQ(sink.text(), "") << "the text is printed by the caller, when the console is ready for it";
}

TEST_F(RunEndingTest, ASuccessHasNoText) {
  RunResult result;
  result.verdict = judge({}, {});
  EXPECT_EQ(ending.write(result), "");
  EXPECT_EQ(written().at("exit_code"), 0);
  EXPECT_FALSE(std::filesystem::exists(state / "error.json"));
}

TEST_F(RunEndingTest, ACauseThatPeopleHaveReadIsNotRepeated) {
  RunResult result = result_of(failed(1, 3));
  const std::string whole = ending.write(result);
  result.cause_on_screen = true;
  EXPECT_LT(ending.write(result).size(), whole.size());
  EXPECT_EQ(written().at("text"), whole) << "a file is read later";
}

TEST_F(RunEndingTest, TheLogsAreNamed) {
  RunResult result = result_of(failed(1, 3));
  result.logs = "/var/log/run";
  EXPECT_THAT(ending.write(result), HasSubstr("/var/log/run"));
}

TEST_F(RunEndingTest, AProgramThatCannotBeExecutedIsExplained) {
  FailureRecord failure = failed(0, ENOENT);
  failure.ending = FailureRecord::Ending::kExecFailed;
  failure.cause = Cause::kExecFailed;
  const Verdict verdict = ending.start_failed(failure);
  EXPECT_EQ(verdict.exit_code, kExitNotFound);
  EXPECT_THAT(sink.text(), HasSubstr("./train"));
  EXPECT_EQ(written().at("exit_code"), kExitNotFound);
}

TEST_F(RunEndingTest, ALauncherThatCannotGoOnLeavesWhy) {
  ending.launcher_failed(std::runtime_error("no descriptors are left"), 2, {});
  EXPECT_THAT(std::string(written().at("text")), HasSubstr("no descriptors are left"));
  EXPECT_EQ(written().at("restarts"), 2);
  EXPECT_EQ(written().at("exit_code"), kExitRefused);
}

TEST_F(RunEndingTest, AnErrorFileThatCannotBeLeftIsAWarning) {
  environment.set("TORCHELASTIC_ERROR_FILE", "/proc/nowhere/error.json");
  (void)ending.write(result_of(failed(1, 3)));
  EXPECT_THAT(sink.text(), HasSubstr("lrun: warning: "));
}

TEST_F(RunEndingTest, TheJobsResultIsTheCauseOrTheReason) {
  EXPECT_EQ(job_result_text(judge({}, {})), "");
  EXPECT_THAT(job_result_text(result_of(failed(1, 3)).verdict), HasSubstr("(exit 3)"));
  EXPECT_THAT(job_result_text(judge({.kind = RunEnd::Kind::kInterrupted, .signal_number = SIGTERM}, {})),
              HasSubstr("SIGTERM"));
}

}  // namespace
}  // namespace lrun::launcher
