#include "inspect/run_list.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/event_loop.h"
#include "inspect/control_socket.h"
#include "inspect/run_directory.h"
#include "inspect/run_status.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

/// A run that others see: alive as long as the object is.
RunDirectory listed_run(const std::filesystem::path& path, const std::string& name = {}) {
  RunDirectory run(path, {}, name);
  run.begin();
  return run;
}

TEST(RunList, HoldsRunsOldestFirstAndSaysWhichLive) {
  const test::TemporaryFolder state;
  (void)listed_run(state / "b");
  const RunDirectory living = listed_run(state / "a");
  std::filesystem::create_directory(state / "no-run");
  EXPECT_EQ(list_runs(state.path()),
            (std::vector<RunEntry>{{"a", state / "a", {state / "a"}, true}, {"b", state / "b", {state / "b"}, false}}));
  EXPECT_FALSE(std::filesystem::exists(state / "no-run" / "lock")) << "who only looks leaves nothing";
  EXPECT_TRUE(list_runs(state / "none").empty());
}

TEST(RunList, RunsOfTheSameSecondStandInTheOrderOfTheirStart) {
  const test::TemporaryFolder state;
  const auto now = std::filesystem::file_time_type::clock::now();
  const auto run_of = [&](const std::string& id, int age_ms) {
    (void)listed_run(state / id);
    std::filesystem::last_write_time(state / id / "lock", now - std::chrono::milliseconds(age_ms));
  };
  run_of("20260102-030405-zzzzzz", 300);
  run_of("20260102-030405-aaaaaa", 200);
  run_of("20260102-030404-mmmmmm", 100);
  std::string order;
  for (const RunEntry& run : list_runs(state.path())) order += run.id.back();
  EXPECT_EQ(order, "mza");
}

TEST(RunList, ARunIsNamedByItsIdItsBeginningOrItsEnd) {
  const RunEntry old{.id = "20260101-aaa"};
  const RunEntry recent{.id = "20260102-bbb"};
  const std::vector<RunEntry> runs{old, recent};
  EXPECT_EQ(runs_named(runs, "20260102-bbb"), std::vector{recent});
  EXPECT_EQ(runs_named(runs, "bbb"), std::vector{recent});
  EXPECT_EQ(runs_named(runs, "20260101"), std::vector{old});
  EXPECT_EQ(runs_named(runs, "2026"), runs);
  EXPECT_TRUE(runs_named(runs, "ccc").empty());
  EXPECT_TRUE(runs_named(runs, "bb").empty()) << "two characters may be the number of a rank";
  EXPECT_EQ(runs_named({{.id = "a"}, {.id = "ab"}}, "a").size(), 1U) << "the whole id beats a beginning";
}

TEST(RunList, ARunIsNamedByItsJobToo) {
  const RunEntry first{.id = "20260101-aaa", .name = "resnet"};
  const RunEntry second{.id = "20260102-bbb", .name = "resnet"};
  const RunEntry other{.id = "20260103-ccc", .name = "resnet-50"};
  const std::vector<RunEntry> runs{first, second, other};
  EXPECT_EQ(runs_named(runs, "resnet"), (std::vector{first, second})) << "the whole name beats a beginning";
  EXPECT_EQ(runs_named(runs, "resnet-"), std::vector{other});
  EXPECT_EQ(runs_named(runs, "res"), runs);
  EXPECT_TRUE(runs_named(runs, "-50").empty());
}

TEST(RunList, ARunIsNamedByItsSlurmJob) {
  const RunEntry first{.id = "20260101-aaa", .name = "slurm-31.0", .jobs = {"31.0"}};
  const RunEntry second{.id = "20260102-bbb", .jobs = {"31.1"}};
  const RunEntry task{.id = "20260103-ccc", .jobs = {"30_2", "33"}};
  const RunEntry other{.id = "20260104-331", .jobs = {"331"}};
  const std::vector<RunEntry> runs{first, second, task, other};
  for (const char* const name : {"31.0", "slurm-31.0"}) EXPECT_EQ(runs_named(runs, name), std::vector{first}) << name;
  for (const char* const name : {"31", "slurm-31"}) EXPECT_EQ(runs_named(runs, name), (std::vector{first, second}));
  for (const char* const name : {"30", "30_2", "33", "slurm-33"}) {
    EXPECT_EQ(runs_named(runs, name), std::vector{task}) << name;
  }
  for (const char* const name : {"3", "30_", "slurm-", "."}) EXPECT_FALSE(is_of_job(task, name)) << name;
}

TEST(RunList, RunsOfOneNameAreOfOneJob) {
  const RunEntry first{.id = "20260101-aaa", .name = "bert", .jobs = {"31"}};
  EXPECT_TRUE(are_of_one_job(first, {.id = "20260102-bbb", .name = "bert", .jobs = {"32"}}));
  EXPECT_FALSE(are_of_one_job(first, {.id = "20260102-bbb", .name = "gpt", .jobs = {"31"}}));
  EXPECT_FALSE(are_of_one_job(first, {.id = "20260102-bbb", .jobs = {"31"}}));
  const RunEntry requeued{.id = "20260103-ccc", .jobs = {"31.0"}};
  EXPECT_TRUE(are_of_one_job(requeued, {.id = "20260104-ddd", .jobs = {"31.0"}}));
  EXPECT_FALSE(are_of_one_job(requeued, {.id = "20260104-ddd", .jobs = {"31.1"}}));
  const RunEntry alone{.id = "20260105-eee"};
  EXPECT_FALSE(are_of_one_job(alone, {.id = "20260106-fff"})) << "they have no name";
  EXPECT_TRUE(are_of_one_job(alone, alone));
}

TEST(RunList, KnowsTheSlurmJobOfARunFromItsFolder) {
  const test::TemporaryFolder state;
  (void)listed_run(state / "a", "resnet\n30_2.0\n33.0");
  (void)listed_run(state / "b", "b\n34");
  EXPECT_EQ(run_in(state / "a")->name, "resnet");
  EXPECT_EQ(run_in(state / "a")->jobs, (std::vector<std::string>{"30_2.0", "33.0"}));
  EXPECT_EQ(run_in(state / "b")->name, "");
  EXPECT_EQ(run_in(state / "b")->job(), "34");
}

TEST(RunList, KnowsTheNameOfAJobFromItsFolder) {
  const test::TemporaryFolder state;
  (void)listed_run(state / "a", "resnet");
  (void)listed_run(state / "b", "b");
  (void)listed_run(state / "c", "none");
  EXPECT_EQ(run_in(state / "a")->name, "resnet");
  EXPECT_EQ(run_in(state / "b")->name, "");
  EXPECT_EQ(run_in(state / "c")->name, "");
}

TEST(RunList, AJobOfSeveralLaunchersIsOneRunAndLivesAsLongAsOneOfThem) {
  const test::TemporaryFolder state;
  const std::filesystem::path job = state / "20260102-030405-abc123";
  RunDirectory first(job, "b", "resnet");
  first.begin();
  {
    RunDirectory second(job, "a", "resnet");
    second.begin();
  }
  const RunDirectory waits(job, "c");
  const RunEntry all{job.filename(), job, {job / "a", job / "b"}, true, "resnet"};
  EXPECT_EQ(list_runs(state.path()), std::vector{all}) << "a launcher that has not begun is not seen";
  EXPECT_EQ(run_in(job / "a"), (RunEntry{all.id, job / "a", {job / "a"}, false, "resnet"}));
  EXPECT_EQ(run_in(job / "c"), std::nullopt);
}

TEST(RunList, ARunIsOverWithTheResultsOfAllItsLaunchers) {
  const test::TemporaryFolder state;
  const std::filesystem::path job = state / "20260102-030405-abc123";
  RunDirectory first(job, "a");
  RunDirectory second(job, "b");
  first.begin();
  second.begin();
  std::ofstream(job / "a" / "result.json") << "{}";
  EXPECT_TRUE(run_in(job)->alive);
  std::ofstream(job / "b" / "result.json") << "{}";
  EXPECT_FALSE(run_in(job)->alive);
}

TEST(RunList, KnowsLaunchersThatWaitForTheirJobApartFromRuns) {
  const test::TemporaryFolder state;
  const std::filesystem::path job = state / "20260102-030405-aaaaaa";
  RunDirectory starts(job, "a");
  RunDirectory waits(job, "b", "resnet");
  EventLoop loop;
  const ControlSocket control(loop, waits.folder(), [](std::string_view, const ControlSocket::Reply&) {});
  const std::vector<RunEntry> waiting = list_waiting(state.path());
  EXPECT_EQ(waiting, (std::vector<RunEntry>{{"20260102-030405-aaaaaa", job, {job / "b"}, true, "resnet", true}}));
  EXPECT_TRUE(list_runs(state.path()).empty());
  RunDirectory before(state / "20260102-030404-bbbbbb");
  RunDirectory after(state / "20260102-030406-aaaaaa");
  before.begin();
  after.begin();
  std::vector<std::string> order;
  for (const RunEntry& run : list_all(state.path()))
    order.push_back(run.id.substr(14, 1) + (run.waits ? " waits" : ""));
  EXPECT_EQ(order, (std::vector<std::string>{"4", "5 waits", "6"}));
  before.remove();
  after.remove();
  waits.begin();
  EXPECT_TRUE(list_waiting(state.path()).empty());
  EXPECT_EQ(list_runs(state.path()).size(), 1U);
}

TEST(RunList, ALauncherThatComesLateIsPartOfTheRunThatItComesTo) {
  const test::TemporaryFolder state;
  const std::filesystem::path job = state / "20260102-030405-aaaaaa";
  RunDirectory runs(job, "a");
  runs.begin();
  const RunDirectory waits(job, "b");
  EventLoop loop;
  const ControlSocket control(loop, waits.folder(), [](std::string_view, const ControlSocket::Reply&) {});
  EXPECT_EQ(list_all(state.path()), (std::vector<RunEntry>{{job.filename(), job, {job / "a", job / "b"}, true}}));
}

TEST(RunList, ALauncherThatWasKilledWaitsForNothing) {
  const test::TemporaryFolder state;
  const std::filesystem::path job = state / "20260102-030405-aaaaaa";
  EventLoop loop;
  {
    RunDirectory waits(job, "b");
    const ControlSocket control(loop, waits.folder(), [](std::string_view, const ControlSocket::Reply&) {});
    std::filesystem::create_hard_link(job / "b" / "control.sock", job / "left");  // the socket's destructor removes it
  }
  std::filesystem::rename(job / "left", job / "b" / "control.sock");
  EXPECT_TRUE(list_waiting(state.path()).empty());
}

TEST(RunStatus, ComesBackFromItsJson) {
  RunStatus status{.run_id = "r",
                   .pid = 10,
                   .started_ms = 1'700'000'000'123,
                   .running_ms = 4'500,
                   .argv = {"./train", "--lr", "0.1"},
                   .strategy = "ddp",
                   .world_size = 2,
                   .attempt = 1,
                   .master_port = 1234,
                   .phase = "stopping",
                   .suspended = true};
  status.workers = {{0, 0, 11, true, "", "epoch \"3\""}, {1, 1, 12, false, "exited with code 0", ""}};
  status.workers.front().stopped = true;
  EXPECT_EQ(run_status_from_json(to_json(status)), status);
  status.phase = "waiting";
  status.meets_at = "node0 port 29500";
  status.waits_for = "no node has joined";
  status.gives_up_in_ms = 0;
  EXPECT_EQ(run_status_from_json(to_json(status)), status);
  EXPECT_FALSE(status.stopping());
  status.hosts = {{"a", "running"}};
  status.world_size = 0;
  EXPECT_EQ(run_status_from_json(to_json(status)), status) << "a head's";
}

TEST(RunStatus, FitsIntoWhatOtherLaunchersTake) {
  RunStatus status{.run_id = "r", .host = "a", .pid = 10, .argv = {std::string(5000, 'x')}, .world_size = 8};
  for (int rank = 0; rank < 8; ++rank) {
    status.workers.push_back({.rank = rank, .pid = 20 + rank, .last_line = std::string(400, 'y')});
  }
  for (const std::size_t most : {8000U, 4500U, 3600U}) {
    const std::string json = to_json_within(status, most);
    EXPECT_LE(json.size(), most);
    ASSERT_TRUE(run_status_from_json(json));
    EXPECT_EQ(run_status_from_json(json)->workers.size(), 8U) << "ranks matter more than their lines";
  }
  const auto cut = run_status_from_json(to_json_within(status, 500));
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->workers.empty());
  EXPECT_EQ(cut->ranks_left_out, 8) << "the reader is to know";
}

TEST(RunStatus, RefusesWhatNoRunWouldSay) {
  EXPECT_FALSE(run_status_from_json(""));
  EXPECT_FALSE(run_status_from_json("[]"));
  EXPECT_FALSE(run_status_from_json(R"({"schema":1,"error":"unknown command"})"));
  RunStatus status{.run_id = "r", .pid = 10, .world_size = 1, .phase = "running"};
  ASSERT_TRUE(run_status_from_json(to_json(status)));
  status.pid = -1;
  EXPECT_FALSE(run_status_from_json(to_json(status))) << "-1 would be everybody";
  status.pid = 10;
  status.workers = {{0, 0, -5, true, "", ""}};
  EXPECT_FALSE(run_status_from_json(to_json(status)));
}

}  // namespace
}  // namespace lrun::launcher
