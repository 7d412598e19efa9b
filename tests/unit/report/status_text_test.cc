#include "report/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace lrun::launcher {
namespace {

RunStatus four_ranks() {
  RunStatus status{.run_id = "20260102-030405-abcdef",
                   .pid = 100,
                   .started_ms = 1'000'000,
                   .argv = {"./train", "--name", "my run", "it's"},
                   .strategy = "ddp",
                   .world_size = 4,
                   .phase = "running"};
  for (int rank = 0; rank < 4; ++rank) status.workers.push_back({rank, rank, 101 + rank, true, "", ""});
  return status;
}

TEST(StatusText, SaysTheSameOfManyRanksOnce) {
  RunStatus status = four_ranks();
  status.workers[1].last_line = "epoch 3, loss 0.25";
  status.workers[3] = {3, 3, 104, false, "exited with code 0", "done"};
  EXPECT_EQ(status_text(status, 1'192'000),
            "run 20260102-030405-abcdef (pid 100): running for 3m12s, world size 4, ddp: ./train --name "
            "'my run' 'it'\\''s'\n"
            "  RANK  STATE               LAST LINE\n"
            "  0,2   running\n"
            "  1     running             epoch 3, loss 0.25\n"
            "  3     exited with code 0  done\n");
}

TEST(StatusText, ManyRanksThatDifferInNumbersShareALine) {
  RunStatus status = four_ranks();
  status.workers.clear();
  for (int rank = 0; rank < 64; ++rank) {
    status.workers.push_back({rank, rank, 101 + rank, true, "", "loss 0." + std::to_string(rank)});
  }
  std::string text = status_text(status, 0);
  EXPECT_EQ(text.substr(text.find('\n') + 1), "  RANK  STATE    LAST LINE\n  0-63  running  loss 0.0\n");
  status.workers.resize(4);
  text = status_text(status, 0);
  EXPECT_NE(text.find("  3     running  loss 0.3\n"), std::string::npos) << text;
}

TEST(StatusText, LaunchersOfARunOnOneHostAreOneTable) {
  RunStatus first = four_ranks();
  first.host = "a";
  first.nodes = 3;
  first.world_size = 8;
  RunStatus second = first;
  second.pid = 200;
  for (WorkerStatus& worker : second.workers) worker.rank += 4;
  RunStatus elsewhere = second;
  elsewhere.host = "b";
  RunStatus stopping = second;
  stopping.phase = "stopping";
  const std::vector<RunStatus> joined = with_hosts_joined({second, first, elsewhere, stopping});
  ASSERT_EQ(joined.size(), 3U);
  EXPECT_EQ(status_text(joined[0], 1'192'000),
            "run 20260102-030405-abcdef (pids 100, 200 on a): running for 3m12s, world size 8, ddp: ./train --name "
            "'my run' 'it'\\''s'\n"
            "  RANK  STATE\n"
            "  0-7   running\n");
  EXPECT_EQ(joined[1], elsewhere);
  EXPECT_EQ(joined[2], stopping);
}

TEST(StatusText, SaysWhatTheRunIsDoing) {
  RunStatus status = four_ranks();
  const auto first_line = [&] {
    const std::string text = status_text(status, 1'192'000);
    return text.substr(0, text.find(", world"));
  };
  status.phase = "killing";
  EXPECT_EQ(first_line(), "run 20260102-030405-abcdef (pid 100): killing its workers, started 3m12s ago");
  status.phase = "lingering";
  EXPECT_EQ(first_line(),
            "run 20260102-030405-abcdef (pid 100): waiting for processes that its workers left, started 3m12s ago");
  status.suspended = true;
  EXPECT_EQ(first_line(), "run 20260102-030405-abcdef (pid 100): suspended, started 3m12s ago");
  status.attempt = 1;
  EXPECT_EQ(first_line(), "run 20260102-030405-abcdef (pid 100): suspended, started 3m12s ago, attempt 1");
}

TEST(StatusText, NamesTheSlurmJobOfARun) {
  RunStatus status = four_ranks();
  status.job = "31.0";
  EXPECT_TRUE(status_text(status, 0).starts_with("run 20260102-030405-abcdef (job 31.0, pid 100): "))
      << status_text(status, 0);
}

TEST(StatusText, SaysThatALauncherWaitsForTheNextRound) {
  RunStatus status{.run_id = "r", .pid = 4, .running_ms = 5000, .world_size = 2, .phase = "between_rounds"};
  EXPECT_NE(status_text(status, 0).find("waiting for other nodes to start again, started 5.0s ago"), std::string::npos);
  status.phase = "backing_off";
  EXPECT_NE(status_text(status, 0).find("waiting to start its workers again, started 5.0s"), std::string::npos);
}

TEST(StatusText, SaysWhomALauncherWaitsFor) {
  RunStatus status = four_ranks();
  status.workers.clear();
  status.phase = "waiting";
  status.running_ms = 72'000;
  status.argv = {"./train"};
  status.host = "node1";
  status.meets_at = "node0 port 29500";
  status.waits_for = "joined: 'node0' from 10.0.0.1 (2 workers); missing: 1 of 2 nodes";
  EXPECT_EQ(status_text(status, 0),
            "run 20260102-030405-abcdef (pid 100 on node1): waiting for 1m12s for the job's other launchers at node0 "
            "port 29500: "
            "./train\n"
            "  joined: 'node0' from 10.0.0.1 (2 workers); missing: 1 of 2 nodes\n");
}

TEST(StatusText, SaysWhenALauncherGivesUp) {
  RunStatus status = four_ranks();
  status.phase = "waiting";
  status.waits_for = "missing: 1 of 2 nodes";
  status.gives_up_in_ms = 540'000;
  EXPECT_NE(status_text(status, 0).find("\n  missing: 1 of 2 nodes; gives up in 9m"), std::string::npos)
      << status_text(status, 0);
}

TEST(StatusText, SaysThatAHeadWaitsForItsHosts) {
  const RunStatus status{.run_id = "20260102-030405-abcdef",
                         .pid = 100,
                         .running_ms = 3'000,
                         .argv = {"./train"},
                         .phase = "waiting",
                         .waits_for = "connecting to 1 of 2 hosts: b",
                         .hosts = {{"a", "starting"}, {"b", "connecting"}}};
  EXPECT_EQ(status_text(status, 0),
            "run 20260102-030405-abcdef (pid 100): waiting for 3.0s for its hosts: ./train\n"
            "  connecting to 1 of 2 hosts: b\n");
}

TEST(StatusText, SaysHowTheHostsOfAHeadAre) {
  RunStatus status = four_ranks();
  status.workers.clear();
  status.world_size = 0;
  status.argv = {"./train"};
  status.hosts = {{"a", "running"}, {"b", "exited with code 0"}, {"c", "running"}};
  EXPECT_EQ(status_text(status, 1'192'000),
            "run 20260102-030405-abcdef (pid 100): running for 3m12s, 3 hosts: ./train\n"
            "  running: a, c\n"
            "  exited with code 0: b\n");
}

TEST(StatusText, NeverSaysALessThanZeroTime) {
  const std::string text = status_text(four_ranks(), 0);  // a clock that was set back
  EXPECT_NE(text.find("running for 0.0s"), std::string::npos) << text;
}

TEST(StatusText, SaysHowLongTheRunGoesOnWhateverTheClockIsSetTo) {
  RunStatus status = four_ranks();
  status.running_ms = 192'000;
  const std::string text = status_text(status, 1'000'000 + 86'400'000);
  EXPECT_NE(text.find("running for 3m12s"), std::string::npos) << text;
}

TEST(StatusText, OneLookOfManyIsALineOfJson) {
  const std::map<std::string, std::string> ended{{"r1", "ok"}};
  const std::string text = status_json({four_ranks()}, {}, {}, &ended);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.find(R"("ended":{"r1":"ok"})"), std::string::npos) << text;
}

TEST(StatusText, ALongCommandIsCut) {
  EXPECT_EQ(command_text({"./train", std::string(100, 'x')}, 12), "train xxxxxx…");
  EXPECT_EQ(command_text({""}, 12), "''");
  const std::vector<std::string> words{"/usr/bin/python", "./a.py", "--data=/long/folder", "my/data/", "/x y/z"};
  EXPECT_EQ(command_text(words, 70), "/usr/bin/python ./a.py --data=/long/folder my/data/ '/x y/z'");
  EXPECT_EQ(command_text(words, 59), "a.py --data=/long/folder my/data/ '/x y/z'");
  EXPECT_EQ(command_text(words, 9), "a.py --da…");
  EXPECT_EQ(command_text({"/usr/bin/python3", "-um", "pkg.train", "x"}, 20), "-m pkg.train x");
  EXPECT_EQ(command_text({"/usr/bin/python3", "-u"}, 12), "/usr/bin/pyt…");
}

}  // namespace
}  // namespace lrun::launcher
