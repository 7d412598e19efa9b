#include "run/worker_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/run/attempt_fixture.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

class WorkerOutputTest : public AttemptFixture {
 protected:
  void run() {
    supervise();
    run_until_finished();
    out.take();
  }
};

TEST_F(WorkerOutputTest, ATakenStreamGoesToConsoleAndFile) {
  plan_for("echo out; echo err >&2");
  run();
  EXPECT_THAT(out.text, HasSubstr("[0] out\n"));
  EXPECT_THAT(out.text, HasSubstr("[0] err\n"));
  EXPECT_EQ(log_of(0), "out\n");
  EXPECT_EQ(log_of(0, "stderr.log"), "err\n");
}

TEST_F(WorkerOutputTest, ARedirectedStreamIsWrittenByTheWorkerItself) {
  plan_for("readlink /proc/self/fd/1 > /dev/null; echo $(readlink /proc/$$/fd/1); echo err >&2");
  plan->output.redirects.all = 1;
  run();
  EXPECT_EQ(log_of(0), (temporary / "attempt_0/0/stdout.log").string() + "\n") << "no pipe to lrun";
  EXPECT_EQ(out.text, "[0] err\n");
  EXPECT_TRUE(WorkerOutput::workers_write_files(plan->output, plan->nodes.front()));
}

TEST_F(WorkerOutputTest, TheEndOfAFileThatTheWorkerWroteIsItsEvidence) {
  plan_for("echo 'ValueError: bad batch' >&2; exit 1");
  plan->output.redirects.all = 3;
  run();
  EXPECT_THAT(attempt->supervisor().outcome().records.at(0).evidence, ::testing::Contains("ValueError: bad batch"));
}

TEST_F(WorkerOutputTest, RanksThatAreNotShownStillHaveTheirFiles) {
  plan_for("echo $RANK", 2);
  plan->output.local_ranks = {1};
  run();
  EXPECT_THAT(out.text, HasSubstr("[1] 1\n"));
  EXPECT_THAT(out.text, ::testing::Not(HasSubstr("[0]")));
  EXPECT_EQ(log_of(0), "0\n");
}

TEST_F(WorkerOutputTest, APtyMakesWorkersBelieveInATerminal) {
  plan_for("test -t 1 && echo terminal");
  plan->output.pty = true;
  run();
  EXPECT_THAT(out.text, HasSubstr("terminal"));
}

TEST(LogOptions, FollowThePlan) {
  LaunchPlan plan = plan_of(request_for("2"), cpu_node());
  plan.output.console.value = ConsoleMode::kFold;
  plan.output.timestamps = true;
  plan.output.files = false;
  const LogOptions fold = log_options(plan);
  EXPECT_TRUE(fold.prefix && fold.fold && fold.timestamps);
  EXPECT_FALSE(fold.files || fold.one_rank);
  plan.output.console.value = ConsoleMode::kRank0;
  EXPECT_TRUE(log_options(plan).one_rank);
  EXPECT_FALSE(log_options(plan).prefix);
}

}  // namespace
}  // namespace lrun::launcher
