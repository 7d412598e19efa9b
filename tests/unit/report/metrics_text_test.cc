#include "report/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

RunStatus two_ranks() {
  RunStatus status{.run_id = "r1",
                   .host = "node0",
                   .nodes = 2,
                   .started_ms = 1'767'323'045'006,
                   .strategy = "ddp",
                   .world_size = 4,
                   .attempt = 3,
                   .phase = "running"};
  status.workers.push_back({.rank = 2, .local_rank = 0, .running = true, .stopped = true});
  status.workers.push_back({.rank = 3, .local_rank = 1, .running = false, .ending = "exited with code 0"});
  return status;
}

TEST(MetricsText, HasTheRunFirst) {
  EXPECT_THAT(
      metrics_text(two_ranks(), {}),
      AllOf(HasSubstr("# TYPE lrun_run_info gauge\n# HELP lrun_run_info The run, and the host of this launcher.\n"
                      "lrun_run_info{run=\"r1\",host=\"node0\",first_rank=\"2\",strategy=\"ddp\",version=\""),
            HasSubstr("\nlrun_run_phase{run=\"r1\",host=\"node0\",first_rank=\"2\",phase=\"running\"} 1\n"),
            HasSubstr("# UNIT lrun_run_start_time_seconds seconds\n"),
            HasSubstr("\nlrun_run_start_time_seconds{run=\"r1\",host=\"node0\",first_rank=\"2\"} 1767323045.006\n"),
            HasSubstr("\nlrun_run_world_size{run=\"r1\",host=\"node0\",first_rank=\"2\"} 4\n"),
            HasSubstr("\nlrun_run_nodes{run=\"r1\",host=\"node0\",first_rank=\"2\"} 2\n"),
            HasSubstr("# TYPE lrun_run_restarts counter\n"),
            HasSubstr("\nlrun_run_restarts_total{run=\"r1\",host=\"node0\",first_rank=\"2\"} 3\n"),
            EndsWith("\n# EOF\n")));
}

TEST(MetricsText, HasEachRankThatItKnowsSomethingOf) {
  RunStatus status = two_ranks();
  status.workers[0].quiet_ms = 61'500;
  status.workers[0].steps = {.count = 120, .took_ms = 60'000, .last_ms_ago = 40};
  status.workers[0].use = {.lived_ms = 70'000, .cpu_ms = 12'030, .cpu_percent = 90, .resident_bytes = 1048576};
  const std::string text = metrics_text(status, {});
  const std::string rank2 = "{run=\"r1\",rank=\"2\",local_rank=\"0\"} ";
  const std::string rank3 = "{run=\"r1\",rank=\"3\",local_rank=\"1\"} ";
  EXPECT_THAT(text, AllOf(HasSubstr("\nlrun_rank_running" + rank2 + "1\nlrun_rank_running" + rank3 + "0\n"),
                          HasSubstr("\nlrun_rank_stopped" + rank2 + "1\nlrun_rank_stopped" + rank3 + "0\n"),
                          HasSubstr("# TYPE lrun_rank_cpu_seconds counter\n# UNIT lrun_rank_cpu_seconds seconds\n"),
                          HasSubstr("\nlrun_rank_cpu_seconds_total" + rank2 + "12.030\n#"),
                          HasSubstr("\nlrun_rank_resident_memory_bytes" + rank2 + "1048576\n#"),
                          HasSubstr("\nlrun_rank_quiet_seconds" + rank2 + "61.500\n#"),
                          HasSubstr("\nlrun_rank_steps_total" + rank2 + "120\n#"),
                          HasSubstr("\nlrun_rank_last_step_age_seconds" + rank2 + "0.040\n#")));
}

TEST(MetricsText, HasNoSilenceOfARankThatHasEnded) {
  RunStatus status = two_ranks();
  for (WorkerStatus& worker : status.workers) {
    worker.quiet_ms = 700'000;
    worker.steps = {.count = 2, .took_ms = 100, .last_ms_ago = 700'000};
  }
  const std::string text = metrics_text(status, {});
  EXPECT_THAT(text, AllOf(HasSubstr("\nlrun_rank_quiet_seconds{run=\"r1\",rank=\"2\""),
                          Not(HasSubstr("\nlrun_rank_quiet_seconds{run=\"r1\",rank=\"3\""))));
  EXPECT_THAT(text, AllOf(HasSubstr("\nlrun_rank_last_step_age_seconds{run=\"r1\",rank=\"2\""),
                          Not(HasSubstr("\nlrun_rank_last_step_age_seconds{run=\"r1\",rank=\"3\""))));
  EXPECT_THAT(text, HasSubstr("\nlrun_rank_steps_total{run=\"r1\",rank=\"3\""));
}

TEST(MetricsText, IsKnownWhereItIsRead) {
  EXPECT_TRUE(are_metrics(metrics_text(two_ranks(), {}).substr(0, kMostMetricsHead)));
  EXPECT_FALSE(are_metrics("#!/bin/sh"));
}

TEST(MetricsText, LeavesOutWhatNobodyKnows) {
  EXPECT_THAT(metrics_text(two_ranks(), {}),
              AllOf(Not(HasSubstr("cpu")), Not(HasSubstr("memory")), Not(HasSubstr("quiet")), Not(HasSubstr("step")),
                    Not(HasSubstr("exit_code"))));
  RunStatus waiting = two_ranks();
  waiting.workers.clear();
  EXPECT_THAT(metrics_text(waiting, {}), Not(HasSubstr("lrun_rank")));
}

TEST(MetricsText, HasTheExitCodeOfARunThatHasEnded) {
  EXPECT_THAT(metrics_text(two_ranks(), 137),
              HasSubstr("\nlrun_run_exit_code{run=\"r1\",host=\"node0\",first_rank=\"2\"} 137\n"));
}

TEST(MetricsText, EscapesWhatALabelMayNotHold) {
  RunStatus status = two_ranks();
  status.host = "a\"b\\c\nd\xff\xc3\xa9";
  EXPECT_THAT(metrics_text(status, {}), HasSubstr(",host=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa9\","));
}

}  // namespace
}  // namespace lrun::launcher
