// Several launchers of one job on one machine, which lose their leader, and get it back.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/elastic_jobs.h"

namespace lrun::test {
namespace {

class Failover : public ElasticJobs {};

std::string rest_behind(const std::string& text, const std::string& part) {
  return contains(text, part) ? text.substr(text.find(part)) : "";
}

constexpr const char* kOther = "is_host=false,heartbeat_timeout=3";

/// Three launchers, of which the first leads.
struct Three {
  explicit Three(Job& job, const Words& program)
      : first(job.start({"--node-rank", "0", "--rdzv-conf", kFirst}, program)),
        second(job.start({"--node-rank", "1", "--rdzv-conf", kOther}, program)),
        third(job.start({"--node-rank", "2", "--rdzv-conf", kOther}, program)) {
    EXPECT_TRUE(first.wait_for("rank 0/3") && second.wait_for("rank 1/3") && third.wait_for("rank 2/3"))
        << first.err() << second.err() << third.err();
  }

  static constexpr const char* kFirst = "last_call_timeout=300,heartbeat_timeout=3";  // they begin together
  LrunProcess& first;
  LrunProcess& second;
  LrunProcess& third;
};

struct Two {
  LrunProcess& first;
  LrunProcess& second;
};

/// Two launchers, of which the first leads.
Two start_two(Job& job, const Words& program) {
  const Two nodes{job.start({"--node-rank", "0"}, program),
                  job.start({"--node-rank", "1", "--rdzv-conf", kOther}, program)};
  EXPECT_TRUE(nodes.first.wait_for("rank 0/2") && nodes.second.wait_for("rank 1/2"))
      << nodes.first.err() << nodes.second.err();
  return nodes;
}

TEST_F(Failover, JobsGoOnWithoutTheirLeaders) {
  for (const char* const backend : {"static", "c10d"}) {
    std::filesystem::remove(end_);
    Job job({"--nnodes", "1:3", "--rdzv-backend", backend});
    const Three nodes(job, program());
    kill_whole(nodes.first);
    ASSERT_TRUE(nodes.second.wait_for("rank 0/2 of 2 count 0.")) << nodes.second.err();
    ASSERT_TRUE(nodes.third.wait_for("rank 1/2 of 2 count 0.")) << nodes.third.err();
    EXPECT_TRUE(contains(nodes.third.err(),
                         " is lost: its launcher ended: the connection was closed; the remaining nodes meet again"))
        << nodes.third.err();
    EXPECT_TRUE(eventually([&] { return nodes.first.processes().empty(); })) << "a worker outlived its launcher";
    kill_whole(nodes.second);
    ASSERT_TRUE(nodes.third.wait_for("rank 0/1 of 1 count 0.")) << nodes.third.err();
    end();
    expect_success({&nodes.third});
  }
}

/// One process of lrun is left there, and says nothing that would end the job elsewhere.
TEST_F(Failover, JobsGoOnWithoutTheFirstNodeWhoseGuardIsKilled) {
  Job job({"--nnodes", "1:2"});
  const auto [first, second] = start_two(job, program());
  first.signal(SIGKILL);
  ASSERT_TRUE(second.wait_for("rank 0/1 of 1 count 0.")) << second.err();
  EXPECT_TRUE(contains(second.err(), " is lost: its launcher ended: the connection was closed; ")) << second.err();
  EXPECT_TRUE(eventually([&] { return first.processes().empty(); })) << "something outlived the guard";
  end();
  expect_success({&second});
}

/// Slurm gives a step no other nodes: the launcher that is left cannot go on, and hears why the job ends.
TEST_F(Failover, JobsThatCannotGoOnWithoutTheFirstNodeAreToldThatItsGuardWasKilled) {
  const std::string port = std::to_string(free_port());
  const auto start = [&](const char* node) {
    return std::make_unique<LrunProcess>(joined({"-n", "1", "--master-port", port}, program()),
                                         LrunProcess::Options{.environment = {{"SLURM_JOB_ID", "12"},
                                                                              {"SLURM_STEP_ID", "0"},
                                                                              {"SLURM_STEP_NODELIST", "127.0.0.1,b"},
                                                                              {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                                                              {"SLURM_LOCALID", "0"},
                                                                              {"SLURM_PROCID", node},
                                                                              {"SLURM_NODEID", node}}});
  };
  const std::unique_ptr<LrunProcess> first = start("0");
  const std::unique_ptr<LrunProcess> second = start("1");
  ASSERT_TRUE(first->wait_for("rank 0/2") && second->wait_for("rank 1/2")) << first->err() << second->err();
  first->signal(SIGKILL);
  EXPECT_EQ(second->wait().code, 125) << second->err();
  EXPECT_TRUE(contains(second->err(), ": lrun itself was killed")) << second->err();
}

TEST_F(Failover, JobsGoOnWithoutTheirSilentLeaderWhereTheyAreAMajority) {
  Job job({"--nnodes", "1:3", "--rdzv-backend", "c10d"});
  const Three nodes(job, program());
  const pid_t launcher = nodes.first.launcher_pid();
  ::kill(launcher, SIGSTOP);
  ASSERT_TRUE(nodes.second.wait_for("rank 0/2 of 2 count 0.")) << nodes.second.err();
  ASSERT_TRUE(nodes.third.wait_for("rank 1/2 of 2 count 0.")) << nodes.third.err();
  EXPECT_TRUE(contains(nodes.third.err(), " is lost: silence for 3s; the remaining nodes meet again"))
      << nodes.third.err();
  ::kill(launcher, SIGCONT);
  EXPECT_EQ(nodes.first.wait().code, 125) << "it was replaced: there are no two jobs; " << nodes.first.err();
  EXPECT_TRUE(contains(nodes.first.err(), "; 1 of 3 nodes is not a majority")) << nodes.first.err();
  end();
  expect_success({&nodes.second, &nodes.third});
}

TEST_F(Failover, TheFirstNodeThatIsStartedAgainJoinsItsJob) {
  for (const char* const backend : {"static", "c10d"}) {
    std::filesystem::remove(end_);
    Job job({"--nnodes", "1:3", "--rdzv-backend", backend});
    const Three nodes(job, program());
    kill_whole(nodes.first);
    ASSERT_TRUE(nodes.second.wait_for("rank 0/2 of 2 count 0.")) << nodes.second.err();
    // With one node it has enough: it would wait for others as long as the window of the last call, and begin.
    LrunProcess& again =
        job.start({"--node-rank", "0", "--rdzv-conf", "last_call_timeout=30,heartbeat_timeout=3"}, program());
    ASSERT_TRUE(again.wait_for(" of 3 count 0.")) << again.err() << nodes.second.err();
    const auto is_again_of_three = [&] { return contains(rest_behind(nodes.second.out(), " of 2 "), " of 3 "); };
    ASSERT_TRUE(nodes.second.read_until(is_again_of_three)) << nodes.second.err();
    EXPECT_TRUE(contains(again.err(), "the job is already running: this node joins it at 127.0.0.1 port "))
        << again.err();
    EXPECT_FALSE(contains(again.out(), " of 1 ")) << "a second job: " << again.out();
    // A launcher that comes to the endpoint now is redirected, and stays where the redirecting launcher is lost.
    LrunProcess& late = job.start({"--node-rank", "0", "--rdzv-conf", kOther}, program());
    ASSERT_TRUE(late.wait_for("this node waits until it is needed")) << late.err();
    kill_whole(again);
    ASSERT_TRUE(late.wait_for(" of 3 count 0.")) << late.err();
    end();
    expect_success({&nodes.second, &nodes.third, &late});
  }
}

/// One of three is dead and one does not answer: the third waits a heartbeat for it before it begins, and stands still
/// while the first is started again and begins alone.
TEST_F(Failover, NodesThatHaveNotBegunAgainJoinTheFirstOneThatHas) {
  const std::string slow = "heartbeat_timeout=20";
  Job job({"--nnodes", "1:3"});
  LrunProcess& first = job.start({"--node-rank", "0", "--rdzv-conf", slow + ",last_call_timeout=300"}, program());
  LrunProcess& second = job.start({"--node-rank", "1", "--rdzv-conf", slow + ",is_host=false"}, program());
  LrunProcess& third = job.start({"--node-rank", "2", "--rdzv-conf", slow + ",is_host=false"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/3") && second.wait_for("rank 1/3") && third.wait_for("rank 2/3")) << first.err();
  const pid_t launchers[] = {second.launcher_pid(), third.launcher_pid()};
  ::kill(launchers[1], SIGSTOP);
  kill_whole(first);
  ASSERT_TRUE(second.wait_for("the remaining nodes meet again")) << second.err();
  ::kill(launchers[0], SIGSTOP);
  LrunProcess& again = job.start({"--node-rank", "0", "--rdzv-conf", slow}, program());
  ASSERT_TRUE(again.wait_for("rank 0/1 of 1 count 0.")) << again.err();
  ::kill(launchers[0], SIGCONT);
  ASSERT_TRUE(second.wait_for("/2 of 2 count 0.") && again.wait_for("/2 of 2 count 0.")) << second.err() << again.err();
  EXPECT_TRUE(contains(second.err(), "the job is already running: this node joins it at 127.0.0.1 port "))
      << second.err();
  kill_whole(third);
  end();
  expect_success({&again, &second});
}

/// The second of four cannot go on alone, but invites the first before it knows that.
TEST_F(Failover, TheFirstNodeThatIsStartedAgainDoesNotEndWithOneThatCannotGoOn) {
  const std::string conf = "heartbeat_timeout=3";
  Job job({"--nnodes", "1:4"});
  LrunProcess& first = job.start({"--node-rank", "0", "--rdzv-conf", conf + ",last_call_timeout=300"}, program());
  std::vector<LrunProcess*> others;
  for (const char* const rank : {"1", "2", "3"}) {
    others.push_back(&job.start({"--node-rank", rank, "--rdzv-conf", kOther}, program()));
  }
  for (LrunProcess* const node : others) ASSERT_TRUE(node->wait_for("/4 of 4 count 0.")) << node->err();
  for (const std::size_t silent : {1U, 2U}) ::kill(others[silent]->launcher_pid(), SIGSTOP);
  kill_whole(first);
  ASSERT_TRUE(others[0]->wait_for("the remaining nodes meet again")) << others[0]->err();
  LrunProcess& again = job.start({"--node-rank", "0", "--rdzv-conf", conf + ",last_call_timeout=2"}, program());
  EXPECT_EQ(others[0]->wait().code, 125) << others[0]->err();
  EXPECT_TRUE(contains(others[0]->err(), "; 1 of 4 nodes is not a majority, ")) << others[0]->err();
  ASSERT_TRUE(again.wait_for("rank 0/1 of 1 count 0.")) << again.err();
  EXPECT_TRUE(contains(again.err(), "the rendezvous at 127.0.0.1 port ")) << again.err();
  EXPECT_TRUE(contains(again.err(), ": 1 of 4 nodes is not a majority, ")) << again.err();
  for (const std::size_t silent : {1U, 2U}) kill_whole(*others[silent]);
  end();
  expect_success({&again});
}

/// It begins while the other stands still: both go on, as the manual says, and one says so.
TEST_F(Failover, AJobThatBeginsAtTheEndpointBesideAnotherIsTold) {
  Job job({"--nnodes", "1:2"});
  const auto [first, second] = start_two(job, program());
  kill_whole(first);
  ASSERT_TRUE(second.wait_for("rank 0/1 of 1 count 0.")) << second.err();
  const pid_t launcher = second.launcher_pid();
  ::kill(launcher, SIGSTOP);
  LrunProcess& again = job.start({"--node-rank", "0"}, program());
  ASSERT_TRUE(again.wait_for("rank 0/1 of 1 count 0.")) << again.err();
  ::kill(launcher, SIGCONT);
  EXPECT_TRUE(second.wait_for("warning: another job of this name has started at 127.0.0.1 port ")) << second.err();
  end();
  expect_success({&again, &second});
}

TEST_F(Failover, SparesFollowTheirJobWhereItsLeaderIsLost) {
  Job job({"--nnodes", "2"});
  const auto [first, second] = start_two(job, program());
  LrunProcess& spare = job.start({"--rdzv-conf", kOther}, program());
  ASSERT_TRUE(spare.wait_for("this node waits until it is needed")) << spare.err();
  kill_whole(first);
  ASSERT_TRUE(spare.wait_for("/2 of 2 count 0.") && second.wait_for("/2 of 2 count 0.")) << spare.err() << second.err();
  EXPECT_TRUE(contains(spare.err(), "the leader at 127.0.0.1 is lost: its launcher ended: the connection was closed"))
      << spare.err();
  end();
  expect_success({&second, &spare});
}

TEST_F(Failover, AJobThatIsShortWaitsForItsFirstNode) {
  Job job({"--nnodes", "2"});
  const auto [first, second] = start_two(job, program());
  kill_whole(first);
  ASSERT_TRUE(second.wait_for("waiting up to 10m for other nodes: ")) << second.err();
  ::kill(second.launcher_pid(), SIGCHLD);  // as of a child that asks the name service, which is none of its workers
  LrunProcess& again = job.start({"--node-rank", "0"}, program());
  ASSERT_TRUE(again.wait_for("rank 0/2 of 2 count 0.")) << again.err() << second.err();
  end();
  expect_success({&again, &second});
}

TEST_F(Failover, JobsStopWhereTheirLeaderIsSilentAndHalfOfThemIsLeft) {
  Job job({"--nnodes", "1:2", "--rdzv-conf", "heartbeat_timeout=3"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program());
  LrunProcess& second = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(first.wait_for("rank 0/2") && second.wait_for("rank 1/2")) << first.err() << second.err();
  const pid_t launcher = first.launcher_pid();
  ::kill(launcher, SIGSTOP);
  EXPECT_EQ(second.wait().code, 125) << second.err();
  EXPECT_TRUE(contains(second.err(), " is lost: silence for 3s; 1 of 2 nodes is not a majority, ")) << second.err();
  ::kill(launcher, SIGCONT);
  ASSERT_TRUE(first.wait_for("rank 0/1 of 1 count 0.")) << "half of the nodes go on with the leader; " << first.err();
  end();
  expect_success({&first});
}

}  // namespace
}  // namespace lrun::test
