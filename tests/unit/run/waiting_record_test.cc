#include "run/waiting_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/clock.h"
#include "base/small_file.h"
#include "inspect/run_list.h"
#include "run/run_folders.h"
#include "support/temporary_folder.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

class WaitingRecordTest : public ::testing::Test {
 protected:
  WaitingRecordTest() { plan.run_id = "20260102-030405-abc123"; }

  [[nodiscard]] WaitingRecord record() {
    return {loop,         state / plan.run_id,
            "h1",         "slurm-31.0\n31.0",
            steady_now(), [](std::string_view, const ControlSocket::Reply& reply) { reply("{}"); }};
  }
  [[nodiscard]] std::string file(const char* name) const {
    return read_small_file(state / plan.run_id / "h1" / name, 65536).value_or("");
  }

  EventLoop loop;
  test::TemporaryFolder state;
  LaunchPlan plan = plan_of(request_for("2"), cpu_node());
};

TEST_F(WaitingRecordTest, IsSeenWhileItIsThereAndNotLater) {
  {
    const WaitingRecord waits = record();
    ASSERT_EQ(list_waiting(state.path()).size(), 1U);
    EXPECT_EQ(list_waiting(state.path()).front().job(), "31.0");
    EXPECT_TRUE(list_runs(state.path()).empty());
  }
  EXPECT_TRUE(list_all(state.path()).empty());
}

TEST_F(WaitingRecordTest, BecomesARunThatEndedBeforeItBegan) {
  record().keep(plan, {.end = {.kind = RunEnd::Kind::kInterrupted, .signal_number = SIGTERM}, .exit_code = 143},
                "lrun: note: received SIGTERM\n");
  EXPECT_TRUE(list_waiting(state.path()).empty());
  const std::vector<RunEntry> runs = list_runs(state.path());
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_FALSE(runs.front().alive);
  EXPECT_EQ(runs.front().name, "slurm-31.0");
  EXPECT_EQ(runs.front().job(), "31.0");
  EXPECT_THAT(file("events.jsonl"), HasSubstr("\"run_started\""));
  EXPECT_THAT(file("events.jsonl"), HasSubstr("\"run_ended\""));
  EXPECT_THAT(file("result.json"), HasSubstr("received SIGTERM"));
}

}  // namespace
}  // namespace lrun::launcher
