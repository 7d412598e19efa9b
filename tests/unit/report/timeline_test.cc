#include "report/timeline.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "report/timeline_html.h"
#include "verdict/failure_record.h"

namespace lrun::launcher {
namespace {

using Fate = WorkerSpan::Fate;

/// An event line as EventLog writes it; `fields` is an object.
std::string event(const std::string& time, const std::string& name, const std::string& fields) {
  const std::string inside = fields.substr(1, fields.size() - 2);
  return R"({"schema":1,"time":)" + time + R"(,"event":")" + name + "\"" + (inside.empty() ? "" : ",") + inside + "}\n";
}

std::string ended(const std::string& time, int rank, int attempt, FailureRecord::Ending ending, int value,
                  int stop_signal = 0) {
  FailureRecord record;
  record.node = "here";
  record.rank = rank;
  record.local_rank = rank;
  record.attempt = attempt;
  record.ending = ending;
  record.value = value;
  record.stop_signal = stop_signal;
  if (value == 3) record.error = "ValueError: <bad>";
  return event(time, "worker_ended", to_json(record));
}

constexpr auto kExited = FailureRecord::Ending::kExited;
constexpr auto kSignaled = FailureRecord::Ending::kSignaled;

std::string two_attempts() {
  const std::string workers = R"("workers":[{"rank":0,"local_rank":0,"pid":11},{"rank":1,"local_rank":1,"pid":12}]})";
  return event("1700000000.000", "run_started",
               R"({"run_id":"r1","argv":["./train","a b"],"strategy":"ddp","world_size":2,"logs":"/l/attempt_0",)" +
                   workers) +
         event("1700000000.500", "worker_connected", R"({"rank":0,"attempt":0})") +
         event("1700000000.625", "worker_connected", R"({"rank":1,"attempt":0})") +
         ended("1700000002.000", 1, 0, kExited, 3) +
         event("1700000002.000", "stopping", R"({"reason":"worker_failed","signal":0,"others":1})") +
         ended("1700000002.125", 0, 0, kSignaled, 15, 15) + event("1700000002.250", "restarting", R"({"attempt":1})") +
         event("1700000003.000", "attempt_started", R"({"attempt":1,)" + workers) +
         ended("1700000062.250", 0, 1, kExited, 0) + ended("1700000062.500", 1, 1, kExited, 0) +
         event("1700000062.500", "run_ended", R"({"reason":"succeeded","exit_code":0})");
}

TEST(Timeline, HasTheCommandLineOfLrunWhereItWasRecorded) {
  EXPECT_TRUE(timeline_from_events(two_attempts())->command_line.empty()) << "an older lrun";
  const auto timeline = timeline_from_events(
      event("1700000000.000", "run_started",
            R"({"run_id":"r1","argv":["./train"],"command_line":["lrun","./train"],"folder":"/f","strategy":"ddp",)"
            R"("world_size":1,"workers":[]})"));
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->command_line, (std::vector<std::string>{"lrun", "./train"}));
  EXPECT_EQ(timeline->folder, "/f");
}

TEST(Timeline, IsReadFromEvents) {
  const auto timeline = timeline_from_events(two_attempts());
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->run_id, "r1");
  EXPECT_EQ(timeline->started_ms, 1'700'000'000'000);
  EXPECT_EQ(timeline->ended_ms, 1'700'000'062'500);
  ASSERT_EQ(timeline->workers.size(), 4U);
  EXPECT_EQ(timeline->workers[0].milestones,
            (std::vector<Milestone>{{1'700'000'000'500, "connected to the store", 1}}));
  EXPECT_EQ(timeline->workers[0].fate, Fate::kStopped);
  EXPECT_EQ(timeline->workers[1].fate, Fate::kFailed);
  EXPECT_EQ(timeline->workers[3].fate, Fate::kSucceeded);
  EXPECT_EQ(timeline->workers[3].attempt, 1);
}

TEST(Timeline, IsThisText) {
  EXPECT_EQ(timeline_text(*timeline_from_events(two_attempts())),
            "run r1: world size 2, ddp: ./train 'a b'\n"
            "began 2023-11-14 22:13:20 UTC, took 1m02s\n"
            "\n"
            "      0.000              ranks 0-1: spawned\n"
            "      0.500 – 0.625      ranks 0-1: connected to the store\n"
            "      2.000              rank 1: exited with code 3: ValueError: <bad>\n"
            "      2.000              stopping 1 worker\n"
            "      2.125              rank 0: stopped by lrun: SIGTERM\n"
            "      2.250              restart 1\n"
            "      3.000              ranks 0-1: spawned, attempt 1\n"
            "     62.250 – 62.500     ranks 0-1: exited with code 0\n"
            "     62.500              the run ended: succeeded, exit code 0\n");
}

/// The same with the stamp that nobody sets.
std::string event_at(const std::string& time, const std::string& steady, const std::string& name,
                     const std::string& fields) {
  std::string line = event(time, name, fields);
  return line.insert(line.find(R"("event")"), R"("steady":)" + steady + ",");
}

TEST(Timeline, TakesAsLongAsItTookWhateverTheClockIsSetTo) {
  const std::string workers = R"("workers":[{"rank":0,"local_rank":0,"pid":11}]})";
  const auto timeline = timeline_from_events(
      event_at("1700000000.000", "500.250", "run_started",
               R"({"run_id":"r1","argv":["./train"],"strategy":"ddp","world_size":1,"logs":"",)" + workers) +
      event_at("1700086401.000", "501.250", "restarting", R"({"attempt":1})") +
      event_at("1700086401.500", "501.750", "attempt_started", R"({"attempt":1,)" + workers) +
      event_at("1600000000.000", "502.500", "run_ended", R"({"reason":"succeeded","exit_code":0})"));
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline_text(*timeline),
            "run r1: world size 1, ddp: ./train\n"
            "began 2023-11-14 22:13:20 UTC, took 2.2s\n"
            "\n"
            "      0.000              rank 0: spawned\n"
            "      1.000              restart 1\n"
            "      1.500              rank 0: spawned, attempt 1\n"
            "      2.250              the run ended: succeeded, exit code 0\n");
  EXPECT_EQ(timeline->workers[1].clock_ahead_ms, 86'400'000) << "by which the times of its files are to be read";
}

TEST(Timeline, OfTheSameTimeShowsFirstWhatHappenedFirst) {
  const std::string workers = R"("workers":[{"rank":0,"local_rank":0,"pid":11},{"rank":1,"local_rank":1,"pid":12}]})";
  const auto timeline = timeline_from_events(
      event("1700000000.000", "run_started",
            R"({"run_id":"r1","argv":["./train"],"strategy":"ddp","world_size":2,"logs":"",)" + workers) +
      ended("1700000001.000", 1, 0, kExited, 3) +
      event("1700000001.000", "stopping", R"({"reason":"worker_failed","signal":0,"others":1})") +
      ended("1700000001.000", 0, 0, kSignaled, 15, 15) + event("1700000001.000", "restarting", R"({"attempt":1})") +
      event("1700000001.000", "attempt_started", R"({"attempt":1,)" + workers));
  ASSERT_TRUE(timeline);
  const std::string text = timeline_text(*timeline);
  EXPECT_EQ(text.substr(text.find("\n\n") + 2),
            "      0.000              ranks 0-1: spawned\n"
            "      1.000              rank 1: exited with code 3: ValueError: <bad>\n"
            "      1.000              stopping 1 worker\n"
            "      1.000              rank 0: stopped by lrun: SIGTERM\n"
            "      1.000              restart 1\n"
            "      1.000              ranks 0-1: spawned, attempt 1\n");
}

/// The last line but one of a run that `stopping` ended between two attempts.
std::string what_ended(const std::string& reason, int signal_number, int others) {
  const auto timeline =
      timeline_from_events(event("1700000000.000", "run_started",
                                 R"({"run_id":"r1","argv":["./train"],"strategy":"ddp","world_size":1,"logs":"",)"
                                 R"("workers":[{"rank":0,"local_rank":0,"pid":11}]})") +
                           event("1700000001.000", "stopping",
                                 R"({"reason":")" + reason + R"(","signal":)" + std::to_string(signal_number) +
                                     R"(,"others":)" + std::to_string(others) + "}"));
  return timeline && !timeline->marks.empty() ? timeline->marks.front().what : std::string();
}

TEST(Timeline, KnowsWhatEachRankUsedAndItsPeakMemory) {
  FailureRecord record;
  record.rank = 1;
  record.attempt = 1;
  record.peak_memory_kib = 3 << 20;
  const auto usage = [](const std::string& ranks, const std::string& memory, const std::string& cpu) {
    return event("1700000004.000", "usage",
                 R"({"attempt":1,"rank":)" + ranks + R"(,"memory_kib":)" + memory + R"(,"cpu_percent":)" + cpu + "}");
  };
  const std::string whole = two_attempts();
  const std::string begin = whole.substr(0, whole.find(R"({"schema":1,"time":1700000062.250)"));
  const auto timeline = timeline_from_events(
      begin + usage("[0,1]", "[2048,1024]", "[95,100]") + usage("[0,7]", "[1024,1]", "[0,1]") +
      usage("[0,1]", "[1]", "[1,1]") + usage("[0]", "[-1]", "[1]") + usage("[1]", "[1e300]", "[1]") +
      usage("{}", "3", "\"x\"") + event("1700000005.000", "worker_ended", to_json(record)) +
      event("1700000005.000", "run_ended", R"({"reason":"worker_failed","exit_code":3,"rank":1})"));
  ASSERT_TRUE(timeline);
  ASSERT_EQ(timeline->workers.size(), 4U);
  EXPECT_TRUE(timeline->workers[0].usage.empty()) << "of an attempt before";
  EXPECT_EQ(timeline->workers[2].usage,
            (std::vector<UsageSample>{
                {1'700'000'004'000, 2048, 95}, {1'700'000'004'000, 1024, 0}, {1'700'000'004'000, 1, 1}}));
  EXPECT_EQ(timeline->workers[3].usage, (std::vector<UsageSample>{{1'700'000'004'000, 1024, 100}}));
  EXPECT_EQ(timeline->workers[2].peak_memory_kib, 2048);
  EXPECT_EQ(timeline->culprit, 1);
  EXPECT_NE(timeline_text(*timeline).find(", took 5.0s, peak memory 3 GiB (rank 1)\n"), std::string::npos)
      << timeline_text(*timeline);
  EXPECT_NE(timeline_html(*timeline, "").find("<td class=\"number\">3 GiB</td>"), std::string::npos);
  EXPECT_EQ(timeline_text(*timeline).find("usage"), std::string::npos);
}

TEST(Timeline, KnowsTheNewestCheckpointOfEachRound) {
  const std::string found = R"({"attempt":0,"written":1700000001.500,"written_in_memory":1700000001.750})";
  std::string events = two_attempts();
  events.insert(events.find(R"({"schema":1,"time":1700000002.250)"),
                event("1700000002.125", "checkpoints_found", found) +
                    event("1700000002.125", "checkpoints_found", R"({"attempt":0,"written":1600000000.000})"));
  const auto timeline = timeline_from_events(events);
  ASSERT_TRUE(timeline);
  ASSERT_EQ(timeline->checkpoints.size(), 2U);
  EXPECT_EQ(timeline->checkpoints[0],
            (CheckpointTimes{timeline->workers[0].round, 1'700'000'001'500, 1'700'000'001'750, 6}));
  EXPECT_EQ(timeline->checkpoints[1].in_memory_ms, 0);
  EXPECT_EQ(timeline->stops_ms, std::vector<std::int64_t>{1'700'000'002'000});
  const std::string text = timeline_text(*timeline);
  EXPECT_NE(text.find("  1.750              newest checkpoint, in memory\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("newest checkpoint\n"), std::string::npos) << "it is older than the run: " << text;
}

TEST(Timeline, TakesNoCheckpointOfAFileServersClockThatIsAheadForLater) {
  std::string events = two_attempts();
  events.insert(events.find(R"({"schema":1,"time":1700000002.250)"),
                event("1700000002.125", "checkpoints_found", R"({"attempt":0,"written":1700009999.000})"));
  const auto timeline = timeline_from_events(events);
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->checkpoints.at(0).kept_ms, 1'700'000'002'125);
  EXPECT_EQ(timeline->last_ms(), timeline->ended_ms);
}

TEST(MergedTimeline, ShowsTheNewestCheckpointOfAllNodes) {
  Timeline one = *timeline_from_events(two_attempts());
  one.checkpoints = {{one.workers[0].round, one.started_ms + 500}};
  Timeline other = one;
  other.checkpoints = {{one.workers[0].round, one.started_ms + 750}};
  const std::string text = timeline_text(merged({one, other}));
  EXPECT_NE(text.find("  0.750              newest checkpoint\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("  0.500              newest checkpoint\n"), std::string::npos) << text;
}

TEST(Timeline, SaysWhyARunEndedWhereNobodyWasLeftToBeStopped) {
  EXPECT_EQ(what_ended("timed_out", 0, 0), "the time of --timeout is over");
  EXPECT_EQ(what_ended("interrupted", 2, 0), "received SIGINT");
  EXPECT_EQ(what_ended("worker_failed", 0, 0), "") << "the worker's own end says it";
  EXPECT_EQ(what_ended("requested", 0, 1), "asked to stop: stopping 1 worker");
  EXPECT_EQ(what_ended("interrupted", 15, 2), "received SIGTERM: stopping 2 workers");
  EXPECT_EQ(what_ended("of a later version", 0, 3), "stopping 3 workers");
}

/// A run of one worker that has just begun, and then this event.
Timeline begun_then(const std::string& name, const std::string& fields) {
  return *timeline_from_events(event("1700000000.000", "run_started",
                                     R"({"run_id":"r1","argv":["./train"],"strategy":"ddp","world_size":1,"logs":"",)"
                                     R"("workers":[{"rank":0,"local_rank":0,"pid":11}]})") +
                               event("1700000001.000", name, fields));
}

TEST(Timeline, HasPlainWordsForWhatHappensToARun) {
  const auto mark = [](const std::string& name, const std::string& fields) {
    return begun_then(name, fields).marks.at(0).what;
  };
  EXPECT_EQ(mark("nodes_changed", "{}"), "the nodes of the job have changed");
  EXPECT_EQ(mark("killing", "{}"), "killing workers that have not ended");
  EXPECT_EQ(mark("settling", R"({"rank":0,"moment_ms":300})"), "waiting for what other ranks report");
  EXPECT_EQ(mark("restarting", R"({"attempt":2,"delay_ms":4000})"), "restart 2 in 4s");
  EXPECT_EQ(mark("of_a_later_version", "{}"), "of a later version");
  EXPECT_EQ(begun_then("run_ended", R"({"reason":"timed_out","exit_code":1})").reason, "timed out");
}

TEST(Timeline, TellsASecondStartOfTheSameAttempt) {
  const std::string workers = R"("workers":[{"rank":0,"local_rank":0,"pid":11}]})";
  const auto timeline = timeline_from_events(
      event("1700000000.000", "run_started",
            R"({"run_id":"r1","argv":["./train"],"strategy":"ddp","world_size":1,"round":0,)" + workers) +
      event("1700000001.000", "nodes_changed", "{}") +
      event("1700000002.000", "attempt_started", R"({"attempt":0,"round":1,)" + workers));
  ASSERT_TRUE(timeline);
  const std::string text = timeline_text(*timeline);
  EXPECT_EQ(text.substr(text.find("\n\n") + 2),
            "      0.000              rank 0: spawned\n"
            "      1.000              the nodes of the job have changed\n"
            "      2.000              rank 0: spawned\n");
}

TEST(Timeline, PassesOverWhatItDoesNotUnderstand) {
  const std::string whole = two_attempts();
  const auto expected = timeline_from_events(whole);
  EXPECT_EQ(timeline_from_events("not json\n{}\n[1]\n\n" + whole + R"({"schema":1,"time":170000)"), expected)
      << "the last line is being written";
  EXPECT_FALSE(timeline_from_events(""));
  EXPECT_FALSE(timeline_from_events(event("1.0", "stopping", R"({"others":1,"signal":0})"))) << "of no run";
  const std::string strange = event("1e300", "worker_connected", R"({"rank":0,"attempt":0})") +
                              event("2.0", "worker_connected", R"({"rank":7,"attempt":0})") +
                              event("2.0", "worker_connected", R"({"rank":"x"})") + event("2.0", "first_step", "{}");
  EXPECT_TRUE(timeline_from_events(whole + strange));
}

TEST(Timeline, OfANodeThatJoinedLaterKnowsHowItsWorkersEnded) {
  const std::string fields = R"({"run_id":"r","argv":["p"],"strategy":"ddp","world_size":2,"attempt":2,)";
  const auto timeline = timeline_from_events(
      event("1700000000.000", "run_started", fields + R"("workers":[{"rank":1,"local_rank":0,"pid":11}]})") +
      ended("1700000001.000", 1, 2, kExited, 3));
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->workers.at(0).fate, Fate::kFailed);
  EXPECT_EQ(timeline->workers.at(0).attempt, 2);
}

/// Of a launcher with one worker of these rounds, which ended at this time.
Timeline part_of_job(int rank, std::vector<int> rounds, std::int64_t ended_ms, std::vector<std::string> marks) {
  Timeline part{.run_id = "r", .argv = {"of " + std::to_string(rank)}, .started_ms = 1000, .ended_ms = ended_ms};
  part.reason = "ended by " + std::to_string(rank);
  for (const int round : rounds) {
    WorkerSpan worker;
    worker.rank = rank;
    worker.round = round;
    part.workers.push_back(worker);
  }
  for (const std::string& what : marks) part.marks.push_back({2000, what, 0});
  return part;
}

TEST(MergedTimeline, HasTheWorkersOfAllRoundByRound) {
  const Timeline all = merged({part_of_job(0, {0, 1}, 5000, {}), part_of_job(1, {0, 1}, 5000, {})});
  std::vector<std::pair<int, int>> workers;
  for (const WorkerSpan& worker : all.workers) workers.emplace_back(worker.round, worker.rank);
  EXPECT_EQ(workers, (std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
}

TEST(MergedTimeline, HasTheCommandLineThatWasTyped) {
  Timeline head{.run_id = "r", .command_line = {"lrun", "-H", "a,b"}, .folder = "/typed", .started_ms = 900};
  head.ended_ms = 9000;
  head.reason = "ended by the head";
  Timeline part = part_of_job(0, {0}, 5000, {});
  part.command_line = {"lrun", "@node"};
  for (const std::vector<Timeline>& parts : {std::vector{head, part}, std::vector{part, head}}) {
    const Timeline all = merged(parts);
    EXPECT_EQ(all.command_line, head.command_line);
    EXPECT_EQ(all.folder, "/typed");
    EXPECT_EQ(all.argv, part.argv);
    EXPECT_EQ(all.reason, "ended by 0") << "a launcher knows more of the end";
  }
}

TEST(MergedTimeline, TellsEachMarkAsOftenAsTheLauncherThatToldItMost) {
  const Timeline all = merged({part_of_job(0, {0}, 3000, {"restarting"}),
                               part_of_job(1, {0, 1, 2}, 9000, {"restarting", "restarting", "stopping 2 workers"})});
  std::vector<std::string> marks;
  for (const Milestone& mark : all.marks) marks.push_back(mark.what);
  EXPECT_EQ(marks, (std::vector<std::string>{"restarting", "restarting", "stopping 2 workers"}));
}

TEST(MergedTimeline, EndsAsTheLastRoundAndNotAsANodeThatLeft) {
  const std::vector<Timeline> parts{part_of_job(0, {0}, 9000, {}), part_of_job(1, {0, 1}, 5000, {}),
                                    part_of_job(2, {1}, 6000, {})};
  EXPECT_EQ(deciding_part(parts), 2U);
  EXPECT_EQ(merged(parts).reason, "ended by 2");
  EXPECT_EQ(merged(parts).ended_ms, 6000);
}

TEST(MergedTimeline, TakesTheCommandOfALauncherOfTheFirstRoundWhateverTheClocksSay) {
  Timeline late = part_of_job(0, {3}, 9000, {});
  late.started_ms = 500;  // by a clock that is behind
  EXPECT_EQ(merged({late, part_of_job(1, {0}, 9000, {})}).argv, std::vector<std::string>{"of 1"});
}

TEST(Timeline, KnowsTheWorkersOfTheLastRound) {
  const auto started = [](const std::string& name, const std::string& workers) {
    return event(
        "1700000001.000", name,
        R"({"run_id":"r","argv":["p"],"strategy":"ddp","world_size":2,"attempt":0,"workers":[)" + workers + "]}");
  };
  const std::string events =
      started("run_started", R"({"rank":0,"local_rank":0,"pid":11},{"rank":1,"local_rank":1,"pid":12})") +
      event("1700000002.000", "nodes_changed", "{}") +
      started("attempt_started", R"({"rank":2,"local_rank":0,"pid":21},{"rank":3,"local_rank":1,"pid":22})");
  const auto timeline = timeline_from_events(events);
  ASSERT_TRUE(timeline);
  const std::vector<WorkerSpan> last = timeline->last_workers();
  ASSERT_EQ(last.size(), 2U) << "the ranks of the smaller world are gone";
  EXPECT_EQ(last[0].pid, 21);
  EXPECT_EQ(last[1].pid, 22);
  EXPECT_TRUE(Timeline().last_workers().empty());
}

TEST(Timeline, KnowsTheFolderOfEachStartOfAnAttempt) {
  const auto events = [](const std::string& second, const std::string& third) {
    const std::string workers = R"("workers":[{"rank":0,"local_rank":0,"pid":11}]})";
    return event("1700000001.000", "run_started",
                 R"({"run_id":"r","argv":["p"],"strategy":"ddp","world_size":2,"logs":"/l/attempt_0",)" + workers) +
           event("1700000002.000", "attempt_started", R"({"attempt":0,)" + second + workers) +
           event("1700000003.000", "attempt_started", R"({"attempt":1,)" + third + workers);
  };
  const auto folders = [](const std::string& text) {
    const auto timeline = timeline_from_events(text);
    std::vector<std::string> all;
    for (const WorkerSpan& worker : timeline->workers) all.push_back(worker.logs);
    return all;
  };
  EXPECT_EQ(folders(events(R"("logs":"/l/attempt_0_again_1",)", R"("logs":"",)")),
            (std::vector<std::string>{"/l/attempt_0", "/l/attempt_0_again_1", ""}));
  EXPECT_EQ(folders(events("", "")), (std::vector<std::string>{"/l/attempt_0", "/l/attempt_0", "/l/attempt_1"}))
      << "an older lrun";
}

TEST(Timeline, OfARunThatGoesOnHasNoEnd) {
  const std::string whole = two_attempts();
  const auto timeline = timeline_from_events(whole.substr(0, whole.find(R"("event":"stopping")")));
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->last_ms(), 1'700'000'002'000);
  EXPECT_EQ(timeline_text(*timeline).find("took"), std::string::npos);
  EXPECT_NE(timeline_svg(*timeline).find("<svg"), std::string::npos);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(TimelinePage, ShowsEveryWorkerAndEscapesWhatTheySaid) {
  Timeline timeline = *timeline_from_events(two_attempts());
  timeline.argv = {"<script>alert(1)</script>", "\x01"};
  timeline.workers[1].log_files = {"/l/a b/1/stderr.log"};
  timeline.plan = "world size  <2>";
  const std::string page = timeline_html(timeline, "lrun: error: \"<b>&\"\nlrun: note: <i>\n");
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
  EXPECT_NE(page.find("<h1 class=\"cause\">&quot;&lt;b&gt;&amp;&quot;</h1>"), std::string::npos);
  EXPECT_NE(page.find("<pre>lrun: note: &lt;i&gt;\n</pre>"), std::string::npos);
  EXPECT_EQ(count(page, "<td>here</td>"), 4U) << "the host";
  EXPECT_NE(page.find("<a href=\"file:///l/a%20b/1/stderr.log\">stderr</a>"), std::string::npos);
  EXPECT_NE(page.find("<pre>world size  &lt;2&gt;</pre></details>"), std::string::npos);
  EXPECT_EQ(count(page, "<g><title>rank "), 4U) << "a bar for each attempt of each rank";
  EXPECT_EQ(count(page, "class=\"failed\""), 1U);
  EXPECT_EQ(count(page, "class=\"succeeded\""), 2U);
  EXPECT_EQ(count(page, "class=\"mark\" x1"), 2U);
  EXPECT_EQ(count(page, "<tr>"), 5U);
  EXPECT_EQ(count(page, "http"), 2U) << "the name space of SVG and http-equiv: nothing is fetched";
  EXPECT_EQ(count(page, "<g>"), count(page, "</g>"));
}

TEST(TimelinePage, OfARunWithoutAnErrorSaysHowItEnded) {
  Timeline timeline = *timeline_from_events(two_attempts());
  EXPECT_NE(timeline_html(timeline, "").find("<h1>Run r1 succeeded</h1>"), std::string::npos);
  timeline.exit_code = 3;
  EXPECT_NE(timeline_html(timeline, "").find("<h1>Run r1 ended with exit code 3</h1>"), std::string::npos);
  timeline.ended_ms = 0;
  const std::string page = timeline_html(timeline, "lrun: note: the run goes on\n");
  EXPECT_NE(page.find("<h1>Run r1</h1>"), std::string::npos);
  EXPECT_NE(page.find("<pre>lrun: note: the run goes on\n</pre>"), std::string::npos);
  timeline.now_ms = timeline.started_ms + 90'000;
  EXPECT_EQ(timeline.last_ms(), timeline.now_ms) << "the picture reaches it";
  const std::string now = timeline_html(timeline, "");
  EXPECT_NE(now.find("<h1>Run r1 goes on</h1>"), std::string::npos);
  EXPECT_NE(now.find(", running for 1m30s"), std::string::npos);
}

TEST(TimelinePage, TheSameMilestoneHasTheSameShadeInEveryRow) {
  Timeline timeline = *timeline_from_events(two_attempts());
  timeline.workers.resize(2);
  timeline.workers[0].milestones = {{1'700'000'000'100, "first output"}, {1'700'000'000'200, "connected to the store"}};
  timeline.workers[1].milestones = {{1'700'000'000'300, "connected to the store"}};
  const std::string svg = timeline_svg(timeline);
  EXPECT_EQ(count(svg, "class=\"part1\""), 1U);
  EXPECT_EQ(count(svg, "class=\"part2\""), 2U);
}

TEST(TimelinePage, AThousandRanksStillHaveRowsAndReadableNames) {
  Timeline timeline = *timeline_from_events(two_attempts());
  timeline.workers.clear();
  for (int rank = 0; rank < 1000; ++rank)
    timeline.workers.push_back({.rank = rank, .pid = 1, .spawned_ms = 1'700'000'000'000});
  const std::string svg = timeline_svg(timeline);
  EXPECT_EQ(count(svg, "<g><title>rank "), 1000U);
  EXPECT_EQ(count(svg, "class=\"rank\""), 334U);
}

}  // namespace
}  // namespace lrun::launcher
