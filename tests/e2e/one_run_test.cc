// The launchers of a job are one run: one id, one folder where they share the file system, and one answer to each verb.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/elastic_jobs.h"

namespace lrun::test {
namespace {

class OneRun : public ElasticJobs {
 protected:
  /// What a verb prints about the runs of the launchers.
  std::string verb(const Words& words) {
    LrunProcess lrun(words, shared_);
    EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
    return lrun.out();
  }

  [[nodiscard]] std::vector<std::filesystem::path> folders() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(state_.path())) all.push_back(entry.path());
    return all;
  }

  const TemporaryFolder state_;
  const LrunProcess::Options shared_{.environment = {{"LRUN_STATE", state_.path().string()}}};
};

TEST_F(OneRun, OfAllLaunchersOfAJob) {
  const Words program = shell("echo $LRUN_RUN_ID of $RANK; while [ ! -e " + end_.string() + " ]; do sleep 0.01; done");
  Job job({"--num_nodes", "2", "-n", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program, shared_);
  LrunProcess& second = job.start({"--node-rank", "1"}, program, shared_);
  for (const char* const rank : {" of 0", " of 1"}) ASSERT_TRUE(first.wait_for(rank)) << first.err();
  for (const char* const rank : {" of 2", " of 3"}) ASSERT_TRUE(second.wait_for(rank)) << second.err();
  ASSERT_TRUE(eventually([&] { return count(verb({"status"}), "  running  ") == 4; })) << verb({"status"});
  ASSERT_EQ(folders().size(), 1U);
  const std::string id = folders().front().filename();
  end();
  expect_success({&first, &second});

  EXPECT_EQ(verb({"logs"}), "[0] " + id + " of 0\n[1] " + id + " of 1\n[2] " + id + " of 2\n[3] " + id + " of 3\n");
  EXPECT_EQ(verb({"logs", "3"}), "[3] " + id + " of 3\n");
  const std::string runs = verb({"runs"});
  EXPECT_EQ(count(runs, "\n"), 2U) << "a heading, and one run: " << runs;
  EXPECT_TRUE(contains(runs, id)) << runs;
  const std::string report = verb({"report"});
  for (const char* const line : {"ranks 0-3: spawned", "ranks 0-3: exited with code 0", "the run ended: succeeded"}) {
    EXPECT_EQ(count(report, line), 1U) << report;
  }
}

TEST_F(OneRun, IsSeenWhileItsLaunchersWaitForEachOther) {
  const Words program = shell("echo of $RANK; while [ ! -e " + end_.string() + " ]; do sleep 0.01; done");
  Job job({"--num_nodes", "3"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program, shared_);
  LrunProcess& second = job.start({"--node-rank", "1"}, program, shared_);
  std::string status;
  const auto is_shown = [&] {
    status = verb({"status"});
    return count(status, ": waiting for ") == 2 && contains(status, "missing: 1 of 3 nodes (node rank 2)");
  };
  ASSERT_TRUE(eventually(is_shown)) << status;
  EXPECT_EQ(count(status, " for the job's other launchers at 127.0.0.1 port "), 2U) << status;
  EXPECT_TRUE(contains(status, "(pid " + std::to_string(second.pid()) + " on ")) << status;
  EXPECT_TRUE(contains(verb({"runs"}), "  waiting for other nodes  ")) << verb({"runs"});
  const std::string id = status.substr(4, status.find(" (pid") - 4);
  EXPECT_TRUE(contains(verb({"status", id}), "run " + id + " (pid "));
  LrunProcess watch({"status", "--watch", id}, {.environment = {{"LRUN_STATE", state_.path().string()}}});
  ASSERT_TRUE(watch.read_until([&] { return count(watch.out(), ": waiting for ") >= 2; })) << watch.out();

  LrunProcess& third = job.start({"--node-rank", "2"}, program, shared_);
  for (LrunProcess* const launcher : {&first, &second, &third})
    ASSERT_TRUE(launcher->wait_for("of ")) << launcher->err();
  const auto is_one_table = [&] {
    status = verb({"status"});
    return count(status, ": running for ") == 1 && count(status, "  running  ") == 3;
  };
  ASSERT_TRUE(eventually(is_one_table)) << "all are on this host: " << status;
  ASSERT_TRUE(watch.wait_for(": running for ")) << "under the id of the job: " << watch.out();
  EXPECT_EQ(folders().size(), 1U) << "each has a part of the job's folder, and none of another";
  end();
  expect_success({&first, &second, &third});
  EXPECT_EQ(watch.wait().code, 0) << watch.err();
  EXPECT_TRUE(contains(watch.out(), " has ended: ")) << watch.out();
}

TEST_F(OneRun, IsNamedByItsJobAndToldOfWhileALauncherWaits) {
  Job job({"--num_nodes", "2", "--rdzv-id", "resnet"});
  LrunProcess& first = job.start({"--node-rank", "0"}, shell("exit 0"), shared_);
  ASSERT_TRUE(eventually([&] { return contains(verb({"status"}), "missing: 1 of 2 nodes (node rank 1)"); }));
  for (const Words& words :
       {Words{"status", "resnet"}, {"report", "res"}, {"stack"}, {"stack", "resnet"}, {"report"}}) {
    const std::string said = verb(words);
    EXPECT_TRUE(contains(said, " (pid " + std::to_string(first.pid()) + " on ")) << said;
    EXPECT_TRUE(contains(said, "missing: 1 of 2 nodes (node rank 1); gives up in ")) << said;
  }
  LrunProcess logs({"logs", "resnet"}, shared_);
  EXPECT_EQ(logs.wait().code, 0);
  EXPECT_EQ(logs.out(), "") << "it is for lines of ranks";
  EXPECT_TRUE(contains(logs.err(), "missing: 1 of 2 nodes (node rank 1)")) << logs.err();
  EXPECT_TRUE(contains(verb({"stack", "--json"}), "\"ranks\": []"));
  LrunProcess page({"report", "--html", "-"}, shared_);
  EXPECT_EQ(page.wait().code, 125);
  EXPECT_TRUE(contains(page.err(), " has not begun\n")) << page.err();
  first.signal(SIGINT);
  EXPECT_EQ(first.wait().signal_number, SIGINT) << first.err();
}

TEST_F(OneRun, IsToldOfWhereItWasInterruptedBeforeItBegan) {
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, shell("exit 0"), shared_);
  ASSERT_TRUE(eventually([&] { return contains(verb({"status"}), ": waiting for "); })) << first.err();
  first.signal(SIGINT);
  EXPECT_EQ(first.wait().signal_number, SIGINT) << first.err();
  EXPECT_TRUE(contains(verb({"runs"}), "  interrupted: SIGINT  ")) << verb({"runs"});
  const std::string report = verb({"report"});
  EXPECT_TRUE(contains(report, "received SIGINT while waiting for other nodes: joined: ")) << report;
  EXPECT_TRUE(contains(report, "missing: 1 of 2 nodes (node rank 1)\n")) << report;
  LrunProcess logs({"logs"}, shared_);
  EXPECT_EQ(logs.wait().code, 125);
  EXPECT_TRUE(contains(logs.err(), " started no worker here\n")) << logs.err();
}

TEST_F(OneRun, IsToldOfWhereItsLaunchersDidNotMeet) {
  Job job({"--num_nodes", "2", "--rdzv-conf", "join_timeout=3"});
  LrunProcess& first = job.start({"--node-rank", "0"}, shell("exit 0"), shared_);
  EXPECT_EQ(first.wait().code, 125) << first.err();
  EXPECT_TRUE(contains(verb({"runs"}), "  start failed  ")) << verb({"runs"});
  EXPECT_TRUE(contains(verb({"report"}), "lrun: error: the nodes did not meet: not enough nodes in 3s: "))
      << verb({"report"});
}

TEST_F(OneRun, IsNamedByItsSlurmJob) {
  const auto run_as = [&](std::map<std::string, std::string> environment, const std::string& says) {
    environment["LRUN_STATE"] = state_.path().string();
    LrunProcess lrun({"-n", "2", "sh", "-c", "echo " + says}, {.environment = environment});
    EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  };
  run_as({{"SLURM_JOB_ID", "31"}}, "first");
  run_as({{"SLURM_JOB_ID", "33"}, {"SLURM_ARRAY_JOB_ID", "1"}, {"SLURM_ARRAY_TASK_ID", "2"}}, "task");
  EXPECT_EQ(verb({"logs", "31", "0"}), "[0] first\n");
  for (const char* const name : {"31", "slurm-31"}) EXPECT_EQ(verb({"logs", name}), "[0] first\n[1] first\n");
  for (const char* const name : {"33", "1_2"}) EXPECT_EQ(verb({"logs", name}), "[0] task\n[1] task\n");
  EXPECT_EQ(verb({"logs", "1"}), "[1] task\n") << "a rank of the last run, though it is an array, too";
  EXPECT_TRUE(contains(verb({"report", "1"}), "echo task")) << verb({"report", "1"});
  EXPECT_TRUE(contains(verb({"runs"}), "  JOB  ")) << verb({"runs"});
}

TEST_F(OneRun, TellsTheRanksOfAllNodesOnAnyOfThem) {
  const Words program = shell("echo of $RANK; while [ ! -e " + end_.string() + " ]; do sleep 0.01; done");
  Job job({"--num_nodes", "3"});
  std::vector<LrunProcess*> nodes;
  for (const char* const rank : {"0", "1", "2"}) nodes.push_back(&job.start({"--node-rank", rank}, program));
  for (LrunProcess* const node : nodes) ASSERT_TRUE(node->wait_for("of ")) << node->err();
  for (LrunProcess* const node : nodes) {
    const LrunProcess::Options of_node{.environment = {{"LRUN_STATE", node->state().string()}}};
    std::string status;
    const auto shows_all = [&] {
      LrunProcess asked({"status"}, of_node);
      EXPECT_EQ(asked.wait().code, 0) << asked.err();
      status = asked.out();
      return count(status, ": running for ") == 1 && contains(status, "\n  0  ") && contains(status, "\n  1  ") &&
             contains(status, "\n  2  ");
    };
    EXPECT_TRUE(eventually(shows_all)) << status;
    EXPECT_TRUE(status.starts_with("run ")) << status;
    const std::string heading = status.substr(0, status.find('\n'));
    EXPECT_TRUE(contains(heading, "(pids ") && contains(heading, std::to_string(node->pid()))) << status;
  }
  LrunProcess stack({"stack", "--json", "--brief"}, {.environment = {{"LRUN_STATE", nodes.back()->state().string()}}});
  EXPECT_EQ(stack.wait().code, 0) << stack.err();
  for (const char* const rank : {"0", "1", "2"}) {
    EXPECT_TRUE(contains(stack.out(), "\"rank\": " + std::string(rank))) << stack.out() << stack.err();
  }
  end();
  for (LrunProcess* const node : nodes) EXPECT_EQ(node->wait().code, 0) << node->err();
}

TEST_F(OneRun, NamesTheHostAndTheFilesOfACulprit) {
  const Words program = shell("if [ $RANK = 1 ]; then echo last words; exit 7; fi; exec sleep 1000");
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program, shared_);
  LrunProcess& second = job.start({"--node-rank", "1"}, program, shared_);
  EXPECT_EQ(first.wait().code, 7) << first.err();
  EXPECT_EQ(second.wait().code, 7) << second.err();
  const std::size_t at = first.err().find("; logs on ");
  ASSERT_NE(at, std::string::npos) << first.err();
  const std::string place = first.err().substr(first.err().find(": /", at) + 2);
  const std::filesystem::path logs = place.substr(0, place.find('\n'));
  std::ifstream file(logs / "stdout.log");
  std::string line;
  EXPECT_TRUE(std::getline(file, line)) << first.err();
  EXPECT_EQ(line, "last words");
  EXPECT_TRUE(contains(second.err(), "; logs: " + logs.parent_path().string() + "\n")) << second.err();
}

TEST_F(OneRun, GoesOnUnderItsIdWhereNodesComeAndGo) {
  const Words program = shell("echo $LRUN_RUN_ID of $RANK/$WORLD_SIZE; trap 'exit 0' TERM; while [ ! -e " +
                              end_.string() + " ]; do sleep 0.01; done");
  Job job({"--nnodes", "1:2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program, shared_);
  ASSERT_TRUE(first.wait_for(" of 0/1")) << first.err();
  LrunProcess& second = job.start({"--node-rank", "1"}, program, shared_);
  ASSERT_TRUE(first.wait_for(" of 0/2") && second.wait_for(" of 1/2")) << second.err();
  kill_whole(first);  // the leader
  ASSERT_TRUE(second.wait_for(" of 0/1")) << second.err();
  LrunProcess& third = job.start({"--node-rank", "0"}, program, shared_);
  ASSERT_TRUE(third.read_until([&] { return contains(third.out(), "/2\n"); })) << third.err();
  end();
  expect_success({&second, &third});
  ASSERT_EQ(folders().size(), 1U);
  const std::string id = folders().front().filename();
  EXPECT_TRUE(contains(third.out(), id)) << third.out();
  const std::string logs = verb({"logs", "--attempt", "0"});
  EXPECT_EQ(count(logs, id + " of "), 6U) << "of every start: " << logs;
}

}  // namespace
}  // namespace lrun::test
