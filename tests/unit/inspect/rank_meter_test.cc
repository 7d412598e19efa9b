#include "inspect/rank_meter.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lrun::launcher {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20U;

/// A machine that has been up for 100 seconds: launcher 100 with rank 0 (200, since 50 s), which has a child (201).
ProcessTable machine() {
  ProcessTable table{.uptime_ms = 100'000};
  table.processes[100] = {.parent = 1};
  table.processes[200] = {
      .parent = 100, .ticks = 2000, .children_ticks = 400, .started_ticks = 5000, .resident_pages = 256};
  table.processes[201] = {.parent = 200, .ticks = 100, .started_ticks = 6000, .resident_pages = 512};
  table.processes[300] = {.parent = 1, .ticks = 9999, .resident_pages = 9999};
  return table;
}

RunStatus answer_of(StepsDone steps = {}) {
  RunStatus status{.pid = 100, .world_size = 1};
  status.workers.push_back({.rank = 0, .pid = 200, .steps = steps});
  return status;
}

RankUse use_of(RankMeter& meter, const ProcessTable& table, RunStatus status = answer_of()) {
  meter.measure(status, table);
  return status.workers.front().use;
}

TEST(RankMeter, AtTheFirstLookCpuUseIsThatOfTheWholeLife) {
  RankMeter meter;
  EXPECT_EQ(
      use_of(meter, machine()),
      (RankUse{
          .lived_ms = 50'000, .cpu_ms = 25'000, .cpu_percent = 50, .resident_bytes = 3 * kMiB, .steps_in_ks = -1}));
}

TEST(RankMeter, ThenItIsThatSinceTheLastLook) {
  RankMeter meter;
  ProcessTable table = machine();
  use_of(meter, table);
  table.uptime_ms += 2000;
  table.processes[200].ticks += 100;
  table.processes[201].ticks += 200;
  EXPECT_EQ(use_of(meter, table).cpu_percent, 150);
  table.uptime_ms += 2000;
  table.processes[200].children_ticks += table.processes[201].ticks;  // that child has ended
  table.processes.erase(201);
  EXPECT_EQ(use_of(meter, table).cpu_percent, 0);
  EXPECT_EQ(use_of(meter, table).resident_bytes, kMiB);
}

TEST(RankMeter, AnotherProcessWithTheSamePidIsMeasuredAnew) {
  RankMeter meter;
  ProcessTable table = machine();
  use_of(meter, table);
  table.uptime_ms += 60'000;
  table.processes[200] = {.parent = 100, .ticks = 500, .started_ticks = 15'000};
  table.processes.erase(201);
  EXPECT_EQ(use_of(meter, table).cpu_percent, 50);
  EXPECT_EQ(use_of(meter, table).lived_ms, 10'000);
}

TEST(RankMeter, AProcessThatIsNotBelowTheLauncherIsUnknown) {
  RankMeter meter;
  RunStatus status = answer_of();
  status.workers.front().pid = 300;
  EXPECT_EQ(use_of(meter, machine(), status), RankUse{});
  EXPECT_EQ(use_of(meter, {}), RankUse{}) << "no /proc";
  status = answer_of();
  status.workers.front().running = false;
  EXPECT_EQ(use_of(meter, machine(), status), RankUse{}) << "its pid may be another process's";
}

TEST(RankMeter, StepsHaveASpeedFromTheSecondOneOn) {
  RankMeter meter;
  const auto speed = [&](StepsDone steps) { return use_of(meter, machine(), answer_of(steps)).steps_in_ks; };
  EXPECT_EQ(speed({1, 0, 10}), -1);
  EXPECT_EQ(speed({5, 2000, 10}), 2000) << "4 steps in 2 seconds";
  EXPECT_EQ(speed({25, 4000, 10}), 10'000) << "20 steps in 2 seconds";
  EXPECT_EQ(speed({25, 4000, 900}), 10'000) << "no step since the last look";
  EXPECT_EQ(speed({25, 4000, 50'000}), 20) << "it hangs";
  RankMeter other;
  EXPECT_EQ(use_of(other, machine(), answer_of({11, 5000, 10})).steps_in_ks, 2000) << "the mean at the first look";
}

TEST(RankMeter, SeesThisProcess) {
  RunStatus status{.pid = ::getppid(), .world_size = 1};
  status.workers.push_back({.rank = 0, .pid = ::getpid()});
  RankMeter meter;
  const RankUse use = use_of(meter, read_process_table(), status);
  EXPECT_GE(use.lived_ms, 0);
  EXPECT_LT(use.lived_ms, 3'600'000);
  EXPECT_GT(use.resident_bytes, kMiB);
}

}  // namespace
}  // namespace lrun::launcher
