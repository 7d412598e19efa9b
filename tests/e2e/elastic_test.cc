// Several launchers of one job on one machine, whose nodes come and go.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "support/elastic_jobs.h"

namespace lrun::test {
namespace {

class Elastic : public ElasticJobs {};

TEST_F(Elastic, JobsBeginWithFewerNodesThanTheyMayHave) {
  Job job({"--nnodes", "2:3"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& second = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2 of 2 count 0.")) << first.err();
  ASSERT_TRUE(second.wait_for("rank 1/2 of 2 count 0.")) << second.err();
  end();
  expect_success({&first, &second});
}

TEST_F(Elastic, JobsGoOnWithoutANodeWhoseLauncherIsKilled) {
  for (const char* const backend : {"static", "c10d"}) {
    std::filesystem::remove(end_);
    Job job({"--nnodes", "2:3", "--rdzv-backend", backend});
    LrunProcess& first = job.start({"--node-rank", "0"}, program());
    ASSERT_TRUE(eventually([&] { return !first.processes().empty(); }));
    LrunProcess& killed = job.start({"--node-rank", "1", "--rdzv-conf", "is_host=false"}, program());
    LrunProcess& third = job.start({"--node-rank", "2", "--rdzv-conf", "is_host=false"}, program());
    ASSERT_TRUE(first.wait_for("rank 0/3 of 3") && killed.wait_for("rank 1/3") && third.wait_for("rank 2/3"))
        << first.err();
    kill_whole(killed);
    EXPECT_TRUE(eventually([&] { return killed.processes().empty(); })) << "a worker outlived its launcher";
    ASSERT_TRUE(first.wait_for("rank 0/2 of 2 count 0.")) << first.err();
    ASSERT_TRUE(third.wait_for("rank 1/2 of 2 count 0.")) << third.err();
    for (LrunProcess* node : {&first, &third}) {
      EXPECT_TRUE(node->wait_for("is lost: its launcher ended: the connection was closed; 2 of 2:3 nodes go on"))
          << node->err();
    }
    end();
    expect_success({&first, &third});
  }
}

TEST_F(Elastic, JobsGoOnWithoutANodeWhoseGuardIsKilled) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& second = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
  second.signal(SIGKILL);
  ASSERT_TRUE(first.wait_for("rank 0/1 of 1 count 0.")) << first.err();
  end();
  expect_success({&first});
}

TEST_F(Elastic, JobsGoOnWithoutANodeThatIsSilent) {
  Job job({"--nnodes", "1:2", "--rdzv-conf", "heartbeat_timeout=3"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& second = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
  const pid_t launcher = second.launcher_pid();
  ::kill(launcher, SIGSTOP);
  ASSERT_TRUE(first.wait_for("rank 0/1 of 1 count 0.")) << first.err();
  EXPECT_TRUE(contains(first.err(), "is lost: silence for 3s; 1 of 1:2 nodes goes on")) << first.err();
  ::kill(launcher, SIGCONT);
  EXPECT_EQ(second.wait().code, 125) << "it was given up: there are no two jobs; " << second.err();
  end();
  expect_success({&first});
}

TEST_F(Elastic, JobsGoOnWithoutANodeThatIsTakenAway) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& second = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait().signal_number, SIGTERM) << second.err();
  ASSERT_TRUE(first.wait_for("rank 0/1 of 1 count 0.")) << first.err();
  EXPECT_TRUE(contains(first.err(), "its lrun received SIGTERM and left the job; 1 of 1:2 nodes goes on"))
      << first.err();
  end();
  expect_success({&first});
}

TEST_F(Elastic, JobsOfAFixedSizeWaitForANodeThatIsTakenAway) {
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& second = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait().signal_number, SIGTERM) << second.err();
  EXPECT_TRUE(contains(second.err(), "note: this node leaves the job; 1 of 2 nodes is left, which waits up to 10m "))
      << second.err();
  ASSERT_TRUE(
      first.wait_for("its lrun received SIGTERM and left the job; 1 of 2 nodes is left, which waits up to 10m "
                     "for others"))
      << first.err();
  LrunProcess& back = job.start({"--node-rank", "1"}, program());
  EXPECT_TRUE(first.read_until([&] { return count(first.out(), "rank 0/2 of 2 count 0.") == 2; })) << first.err();
  end();
  expect_success({&first, &back});
}

TEST_F(Elastic, CtrlCOnOneNodeEndsAJobOfAFixedSize) {
  for (const int asked : {0, 1}) {
    Job job({"--num_nodes", "2"});
    LrunProcess& first = job.start({"--node-rank", "0"}, shell("echo ready; exec sleep 1000"));
    LrunProcess& second = job.start({"--node-rank", "1"}, shell("echo ready; exec sleep 1000"));
    ASSERT_TRUE(first.wait_for("ready") && second.wait_for("ready")) << first.err() << second.err();
    LrunProcess& here = asked == 0 ? first : second;
    LrunProcess& there = asked == 0 ? second : first;
    here.signal(SIGINT);
    EXPECT_EQ(here.wait().signal_number, SIGINT) << here.err();
    EXPECT_EQ(there.wait().code, 128 + SIGINT) << there.err();
    EXPECT_TRUE(contains(there.err(), "lrun: note: node ")) << "which node: " << there.err();
    EXPECT_TRUE(contains(there.err(), ": received SIGINT")) << "and why: " << there.err();
  }
}

TEST_F(Elastic, TheLastNodeEndsOfASignalThatComesWhileItsWorkersStopForALostOne) {
  for (const char* const nodes : {"2", "1:2"}) {  // one waits for others, one would go on
    Job job({"--nnodes", nodes, "--grace", "100s"});
    LrunProcess& first = job.start({"--node-rank", "0"}, shell("trap '' TERM; echo rank $RANK ready; sleep 1000"));
    LrunProcess& second = job.start({"--node-rank", "1"}, shell("echo rank $RANK ready; exec sleep 1000"));
    ASSERT_TRUE(first.wait_for("rank 0 ready") && second.wait_for("rank 1 ready")) << first.err() << second.err();
    second.signal(SIGTERM);
    ASSERT_TRUE(first.wait_for("its lrun received SIGTERM and left the job; 1 of ")) << first.err();
    first.signal(SIGINT);
    EXPECT_EQ(first.wait().signal_number, SIGINT) << first.err();
    EXPECT_TRUE(contains(first.err(), "error: the run was stopped: received SIGINT")) << first.err();
  }
}

TEST_F(Elastic, JobsOfAFixedSizeWaitForTheirFirstNodeWhereThatIsTakenAway) {
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& second = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait().signal_number, SIGTERM) << first.err();
  ASSERT_TRUE(second.wait_for("the remaining nodes meet again")) << second.err();
  LrunProcess& back = job.start({"--node-rank", "0"}, program());
  EXPECT_TRUE(second.read_until([&] { return count(second.out(), " of 2 count 0.") == 2; })) << second.err();
  end();
  expect_success({&second, &back});
}

TEST_F(Elastic, JobsThatFallBelowTheirLeastSayWhyInTorchrunsWordsToo) {
  Job job({"--compat=torchrun", "--no-python", "--nnodes", "2:3", "--rdzv-backend", "c10d", "--rdzv-conf",
           "join_timeout=2"});
  LrunProcess& first = job.start({}, program());
  LrunProcess& second = job.start({"--rdzv-conf", "join_timeout=2,is_host=false"}, program());
  ASSERT_TRUE(first.wait_for("of 2 count 0.") && second.wait_for("of 2 count 0.")) << first.err() << second.err();
  kill_whole(second);
  EXPECT_EQ(first.wait().code, 125) << first.err();
  EXPECT_TRUE(contains(first.err(), "lrun: error: the run was stopped: node ")) << first.err();
  EXPECT_TRUE(contains(first.err(), "missing: 1 of at least 2 nodes")) << first.err();
}

/// A process that nobody continues but this one.
class HeldProcess {
 public:
  explicit HeldProcess(pid_t pid) : pid_(pid) {
    const bool held = ::ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr) == 0 &&
                      ::ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr) == 0 &&
                      ::waitpid(pid_, nullptr, __WALL) == pid_;
    EXPECT_TRUE(held) << "it cannot be traced";
  }
  void let_go() const { ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr); }

 private:
  pid_t pid_;
};

/// Nobody takes its place while something of it runs: the guard has the connection, too. Here it stands still, and what
/// the killed launcher left is there.
TEST_F(Elastic, ANodeWhoseLauncherIsKilledIsLostWhenItsGuardHasEndedItsWorkers) {
  Job job({"--nnodes", "2", "--rdzv-conf", "heartbeat_timeout=60"});
  const Words with_daemon = shell("setsid sleep 1000 & " + program().back());
  LrunProcess& first = job.start({"--node-rank", "0"}, with_daemon);
  LrunProcess& second = job.start({"--node-rank", "1"}, with_daemon);
  ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
  const pid_t launcher = second.launcher_pid();
  const HeldProcess guard(second.pid());
  ::kill(launcher, SIGKILL);
  ASSERT_TRUE(eventually([&] { return process_state(launcher) == 'Z'; }));
  LrunProcess& spare = job.start({}, program());  // the end of a connection would have been seen before
  ASSERT_TRUE(spare.wait_for("this node waits until it is needed")) << spare.err();
  EXPECT_FALSE(contains(first.err(), "is lost")) << first.err();
  guard.let_go();
  ASSERT_TRUE(first.wait_for(" is lost: its launcher ended: the connection was closed; ")) << first.err();
  EXPECT_TRUE(second.workers().empty()) << "it was lost before";
  EXPECT_EQ(second.wait().code, 125) << second.err();
  ASSERT_TRUE(spare.wait_for("rank 1/2 of 2 count 0.")) << spare.err();
  end();
  expect_success({&first, &spare});
}

TEST_F(Elastic, JobsTakeInANodeThatComesLater) {
  for (const char* const backend : {"static", "c10d"}) {
    std::filesystem::remove(end_);
    Job job({"--nnodes", "1:2", "--rdzv-backend", backend});
    LrunProcess& first = job.start({"--node-rank", "0"}, program());
    ASSERT_TRUE(first.wait_for("rank 0/1 of 1 count 0.")) << first.err();
    LrunProcess& late = job.start({"--node-rank", "1"}, program());
    ASSERT_TRUE(late.wait_for("rank 1/2 of 2 count 0.")) << late.err();
    EXPECT_TRUE(contains(late.err(), "the job runs with 1 of 1:2 nodes: this node joins it in a moment")) << late.err();
    ASSERT_TRUE(first.wait_for("rank 0/2 of 2 count 0.")) << first.err();
    EXPECT_TRUE(contains(first.err(), "has joined: all start again on 2 of 1:2 nodes")) << first.err();
    end();
    expect_success({&first, &late});
    for (const char* const attempt : {"attempt_0", "attempt_0_again_1"}) {
      EXPECT_TRUE(std::filesystem::exists(first.run_folder() / attempt / "0" / "stdout.log"))
          << attempt << " was not kept";
    }
  }
}

TEST_F(Elastic, LogsOfWorkersThatStartedAgainAreFound) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/1")) << first.err();
  ASSERT_TRUE(eventually([&] {
    std::error_code error;
    const auto size = std::filesystem::file_size(first.run_folder() / "events.jsonl", error);
    return !error && size > 0;
  }));
  const LrunProcess::Options beside{.environment = {{"LRUN_STATE", first.state().string()}}};
  LrunProcess followed({"logs", "-f"}, beside);
  ASSERT_TRUE(followed.wait_for("[0] rank 0/1")) << followed.err();
  LrunProcess& late = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(followed.wait_for("[0] rank 0/2")) << followed.out() << followed.err();
  end();
  expect_success({&first, &late, &followed});
  LrunProcess last({"logs"}, beside);
  EXPECT_EQ(last.wait().code, 0) << last.err();
  EXPECT_EQ(last.out(), "[0] rank 0/2 of 2 count 0.\n");
  LrunProcess all({"logs", "--attempt", "0"}, beside);
  EXPECT_EQ(all.wait().code, 0) << all.err();
  EXPECT_EQ(all.out(), "[0] rank 0/1 of 1 count 0.\n[0] rank 0/2 of 2 count 0.\n");
}

TEST_F(Elastic, SparesTakeThePlaceOfALostNode) {
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& killed = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && killed.wait_for("rank 1/2")) << first.err() << killed.err();
  LrunProcess& spare = job.start({}, program());
  ASSERT_TRUE(spare.wait_for("the job runs with 2 of 2 nodes: this node waits until it is needed")) << spare.err();
  EXPECT_FALSE(contains(spare.out(), "rank")) << "nothing runs there before: " << spare.out();
  kill_whole(killed);
  ASSERT_TRUE(spare.wait_for("rank 1/2 of 2 count 0.")) << spare.err();
  end();
  expect_success({&first, &spare});
}

TEST_F(Elastic, SparesThatAreNotNeededEndAsTheJobDoes) {
  for (const bool fails : {false, true}) {
    std::filesystem::remove(end_);
    Job job({"--num_nodes", "2"});
    const Words program_of_first = fails ? shell("echo ready; while [ ! -e " + end_.string() +
                                                 " ]; do sleep 0.1; done; [ $RANK = 0 ] || exec sleep 1000; exit 7")
                                         : program();
    LrunProcess& first = job.start({"--node-rank", "0"}, program_of_first);
    LrunProcess& second = job.start({"--node-rank", "1"}, program_of_first);
    ASSERT_TRUE(first.wait_for(fails ? "ready" : "rank 0/2")) << first.err();
    LrunProcess& spare = job.start({}, program_of_first);
    ASSERT_TRUE(spare.wait_for("waits until it is needed")) << spare.err();
    end();
    for (LrunProcess* node : {&first, &second}) EXPECT_EQ(node->wait().code, fails ? 7 : 0) << node->err();
    EXPECT_EQ(spare.wait().code, fails ? 125 : 0) << spare.err();
    const char* const words =
        fails ? "the job has ended: rank 0 exited with code 7 on " : "the job has succeeded; it did not need this node";
    EXPECT_TRUE(contains(spare.err(), words)) << spare.err();
    EXPECT_FALSE(contains(spare.out(), "rank")) << spare.out();
  }
}

TEST_F(Elastic, JobsWaitForAnotherNodeWhenTooFewAreLeft) {
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& killed = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && killed.wait_for("rank 1/2")) << first.err() << killed.err();
  kill_whole(killed);
  ASSERT_TRUE(first.wait_for("1 of 2 nodes is left, which waits up to 10m for others")) << first.err();
  LrunProcess& another = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(another.wait_for("rank 1/2 of 2 count 0.")) << another.err();
  end();
  expect_success({&first, &another});
}

TEST_F(Elastic, JobsEndWhenNobodyTakesThePlaceOfALostNode) {
  Job job({"--num_nodes", "2", "--rdzv-conf", "join_timeout=15"});  // in which both have to meet, too
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& killed = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && killed.wait_for("rank 1/2")) << first.err() << killed.err();
  kill_whole(killed);
  EXPECT_EQ(first.wait().code, 125) << first.err();
  EXPECT_TRUE(contains(first.err(), "error: the run was stopped: node ")) << first.err();
  EXPECT_TRUE(contains(first.err(), "; not enough nodes in 15s: joined: '")) << first.err();
}

TEST_F(Elastic, JobsSayWhoIsRejectedWhileTheirWorkersRun) {
  Job job({"--nnodes", "1:2"});
  const LrunProcess::Options with_secret{.environment = {{"LRUN_JOB_SECRET", "known to one"}}};
  LrunProcess& first = job.start({"--node-rank", "0"}, program(), with_secret);
  ASSERT_TRUE(first.wait_for("rank 0/1 of 1 count 0.")) << first.err();
  LrunProcess& foreign = job.start({"--node-rank", "1"}, program());
  EXPECT_EQ(foreign.wait().code, 125) << foreign.err();
  EXPECT_TRUE(first.wait_for("warning: rejected a launcher at 127.0.0.1: it has no LRUN_JOB_SECRET")) << first.err();
  end();
  expect_success({&first});
}

TEST_F(Elastic, NodesThatComeLaterCountTheRestartsOfAll) {
  const std::string failed = (folder_.path() / "failed").string();
  const std::string fail = (folder_.path() / "fail").string();
  const Words script = shell("echo rank $RANK/$WORLD_SIZE count $TORCHELASTIC_RESTART_COUNT.; [ -e " + failed +
                             " ] || { touch " + failed + "; exit 3; }; while [ ! -e " + fail +
                             " ]; do sleep 0.1; done; [ $RANK = 0 ] && exit 4; exec sleep 1000");
  Job job({"--nnodes", "1:2", "--max-restarts", "1"});
  LrunProcess& first = job.start({"--node-rank", "0"}, script);
  ASSERT_TRUE(first.wait_for("rank 0/1 count 1.")) << first.err();
  LrunProcess& late = job.start({"--node-rank", "1"}, script);
  ASSERT_TRUE(late.wait_for("rank 1/2 count 1.")) << late.err();
  ASSERT_TRUE(first.wait_for("rank 0/2 count 1.")) << first.err();
  std::ofstream(fail) << "now\n";
  for (LrunProcess* node : {&first, &late}) {
    EXPECT_EQ(node->wait().code, 4) << node->err();
    EXPECT_TRUE(contains(node->err(), "restarted once, as often as allowed")) << node->err();
  }
  std::ifstream events(late.run_folder() / "events.jsonl");
  std::string start;
  std::getline(events, start);
  EXPECT_TRUE(contains(start, R"("event":"run_started")") && contains(start, R"("attempt":1)")) << start;
}

TEST_F(Elastic, JobsGoOnWithoutANewcomerThatCannotStartItsWorkers) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/1 of 1 count 0.")) << first.err();
  LrunProcess& late =
      job.start({"--node-rank", "1", "--role", "another"}, {folder_.script("train", "#!/no/such/interpreter\n")});
  ASSERT_TRUE(first.wait_for("is lost: its workers could not be started: rank 1 could not be executed")) << first.err();
  ASSERT_TRUE(first.wait_for("; 1 of 1:2 nodes goes on")) << first.err();
  ASSERT_TRUE(first.wait_for("all workers start again on 1 of 1:2 nodes: world size 1")) << first.err();
  EXPECT_EQ(late.wait().code, 127) << late.err();
  EXPECT_TRUE(contains(late.err(), "note: this node leaves the job; 1 of 1:2 nodes goes on")) << late.err();
  EXPECT_TRUE(contains(late.err(), "/no/such/interpreter")) << late.err();
  end();
  expect_success({&first});
}

TEST_F(Elastic, JobsEndWhenANodeThatTheyNeedCannotStartItsWorkers) {
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& second =
      job.start({"--node-rank", "1", "--role", "another"}, {folder_.script("train", "#!/no/such/interpreter\n")});
  EXPECT_EQ(second.wait().code, 127) << second.err();
  EXPECT_EQ(first.wait().code, 127) << first.err();
  EXPECT_FALSE(contains(second.err(), "leaves the job")) << second.err();
}

TEST_F(Elastic, JobsGoOnWithoutANodeThatIsTakenAwayWhileAnotherJoins) {
  const std::string go = folder_.path() / "go";
  const Words slow_to_stop =
      shell("trap stop=1 TERM; echo rank $RANK/$WORLD_SIZE of $GROUP_WORLD_SIZE.; while [ ! -e " + end_.string() +
            " ]; do sleep 0.1; [ -z \"$stop\" ] || [ ! -e " + go + " ] || exit 0; done");
  Job job({"--nnodes", "1:3"});
  LrunProcess& first = job.start({"--node-rank", "0"}, slow_to_stop);
  LrunProcess& second = job.start({"--node-rank", "1"}, slow_to_stop);
  ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
  LrunProcess& third = job.start({"--node-rank", "2"}, slow_to_stop);
  ASSERT_TRUE(second.wait_for("has joined: all start again on 3 of 1:3 nodes")) << second.err();
  second.signal(SIGTERM);
  ASSERT_TRUE(second.wait_for("this node leaves the job; 1 of 1:3 nodes goes on")) << second.err();
  ASSERT_TRUE(first.wait_for("its lrun received SIGTERM and left the job; 1 of 1:3 nodes goes on")) << first.err();
  (void)folder_.script("go", "");
  EXPECT_EQ(second.wait().signal_number, SIGTERM) << second.err();
  ASSERT_TRUE(first.wait_for("rank 0/2 of 2.") && third.wait_for("rank 1/2 of 2.")) << first.err() << third.err();
  end();
  expect_success({&first, &third});
}

TEST_F(Elastic, LaunchersThatStoodStillGiveNobodyUp) {
  Job job({"--nnodes", "1:2", "--rdzv-conf", "heartbeat_timeout=3"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/1")) << first.err();
  const pid_t launcher = first.launcher_pid();
  ::kill(launcher, SIGSTOP);
  EXPECT_FALSE(eventually([&] { return process_state(first.pid()) == 'Z'; }, 4s)) << "more than a heartbeat";
  ::kill(launcher, SIGCONT);
  LrunProcess& second = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(second.wait_for("rank 1/2")) << second.err() << first.err();
  end();
  expect_success({&first, &second});
}

}  // namespace
}  // namespace lrun::test
