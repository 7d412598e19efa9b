// Launchers of two jobs that come to one rendezvous.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "support/launchers_of_a_job.h"

namespace lrun::test {
namespace {

TEST(TwoJobs, RejectLaunchersOfTheOther) {
  Job job({"--num_nodes", "2"});
  LrunProcess& leader = job.start({"--node-rank", "0", "--rdzv-id", "mine"}, {"true"});
  LrunProcess& other = job.start({"--node-rank", "1", "--rdzv-id", "yours"}, {"true"});
  EXPECT_EQ(other.wait().code, 125) << other.err();
  EXPECT_TRUE(contains(other.err(), "has '--rdzv-id mine', and node '")) << other.err();
  EXPECT_TRUE(contains(other.err(), "hint: for two jobs, use a different port in '--rdzv-endpoint'")) << other.err();
  EXPECT_FALSE(contains(other.err(), "hint: start lrun on every node")) << other.err();
  LrunProcess& different = job.start({"--node-rank", "1", "--rdzv-id", "mine", "--max-restarts", "3"}, {"true"});
  EXPECT_EQ(different.wait().code, 125) << different.err();
  EXPECT_TRUE(contains(different.err(), "has '--max-restarts 0', and node '")) << different.err();
  EXPECT_TRUE(contains(different.err(), "has '--max-restarts 3'")) << different.err();
  EXPECT_FALSE(contains(different.err(), "hint: start lrun on every node")) << different.err();
  for (const char* const why :
       {"was rejected: another job uses this rendezvous: node '", "' has '--max-restarts 0', and node '"}) {
    EXPECT_TRUE(leader.wait_for(why)) << leader.err();
  }
  LrunProcess& fitting = job.start({"--node-rank", "1", "--rdzv-id", "mine"}, {"true"});
  EXPECT_EQ(fitting.wait().code, 0) << fitting.err();
  EXPECT_EQ(leader.wait().code, 0) << leader.err();
}

TEST(TwoJobs, AreNotMergedByASpareWithTheRankOfANodeThatRuns) {
  TemporaryFolder folder;
  const std::string end = (folder.path() / "end").string();
  const Words program = shell("echo up; while [ ! -e " + end + " ]; do sleep 0.1; done");
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  ASSERT_TRUE(first.wait_for("up") && second.wait_for("up")) << first.err() << second.err();
  LrunProcess& third = job.start({"--node-rank", "1"}, program);
  EXPECT_EQ(third.wait().code, 125) << third.err();
  EXPECT_TRUE(contains(third.err(), "node rank 1 is taken by '")) << third.err();
  EXPECT_TRUE(contains(third.err(), "hint: give each node a '--node-rank' of its own, or none")) << third.err();
  EXPECT_TRUE(first.wait_for("was rejected: node rank 1 is taken by '")) << first.err();
  std::ofstream(end) << "now\n";
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.err();
}

TEST(TwoJobs, OfTorchrunAreMergedWithAWarning) {
  Job job({"--compat=torchrun", "--no-python", "--nnodes", "2", "--rdzv-backend", "c10d"});
  LrunProcess& first = job.start({"--node-rank", "0"}, {"true"});
  LrunProcess& second = job.start({"--node-rank", "1"}, {"echo", "b"});
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.err();
  EXPECT_TRUE(contains(first.err() + second.err(), ": if these are two jobs, give them different '--rdzv-id's"))
      << first.err() << second.err();
}

/// One line with a fixed endpoint is used for several jobs.
class OneEndpoint : public ::testing::Test {
 protected:
  [[nodiscard]] Words job(const std::string& name, const Words& options, const std::string& script) const {
    Words words{"--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint_, "--rdzv-id", name};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& word : shell(script)) words.push_back(word);
    return words;
  }

  const std::string endpoint_ = "127.0.0.1:" + std::to_string(free_port());
};

TEST_F(OneEndpoint, IsNotNeededByAJobOfOneNodeWhereAnotherHasIt) {
  LrunProcess first(job("mine", {"--nnodes", "1"}, "echo up; exec sleep 1000"));
  ASSERT_TRUE(first.wait_for("up")) << first.err();
  for (const Words& options : {Words{"--nnodes", "1"}, Words{"--nnodes", "1", "--rdzv-conf", "is_host=false"}}) {
    LrunProcess second(job("yours", options, "echo $WORLD_SIZE $TORCHELASTIC_RUN_ID"));
    EXPECT_EQ(second.wait().code, 0) << second.err();
    EXPECT_TRUE(contains(second.out(), "1 yours")) << second.out();
  }
  first.signal(SIGTERM);
  first.wait();
}

TEST_F(OneEndpoint, HasToBeHeldByAnotherWhereAJobOfOneNodeIsNotToHoldIt) {
  LrunProcess nobody(job("mine", {"--nnodes", "1", "--rdzv-conf", "is_host=false,read_timeout=1"}, "echo started"));
  EXPECT_EQ(nobody.wait().code, 125) << nobody.err();
  EXPECT_TRUE(contains(nobody.err(), "nobody serves the rendezvous at 127.0.0.1 port ")) << nobody.err();
  EXPECT_EQ(nobody.out(), "");
  LrunProcess early(job("mine", {"--nnodes", "1", "--rdzv-conf", "is_host=false"}, "echo started"));
  ASSERT_TRUE(early.wait_for("waiting up to 1m")) << early.err();
  LrunProcess other(job("yours", {"--nnodes", "1"}, "exec sleep 1000"));
  EXPECT_EQ(early.wait().code, 0) << early.err();
  EXPECT_TRUE(contains(early.out(), "started")) << early.out();
  other.signal(SIGTERM);
  other.wait();
}

TEST_F(OneEndpoint, IsRefusedToAJobOfSeveralNodesWhereAJobOfOneHasIt) {
  LrunProcess first(job("mine", {"--nnodes", "1"}, "echo up; exec sleep 1000"));
  ASSERT_TRUE(first.wait_for("up")) << first.err();
  LrunProcess second(job("yours", {"--nnodes", "1:2"}, "echo started"));
  EXPECT_EQ(second.wait().code, 125) << second.err();
  EXPECT_TRUE(contains(second.err(), "it is the workers' store of the job 'mine', which has one node\n"))
      << second.err();
  EXPECT_TRUE(contains(second.err(), "hint: for two jobs, use a different port in '--rdzv-endpoint'")) << second.err();
  EXPECT_FALSE(contains(second.out(), "started")) << second.out();
  first.signal(SIGTERM);
  first.wait();
  EXPECT_FALSE(contains(first.err(), "store:")) << "it was no trouble for the first: " << first.err();
}

TEST_F(OneEndpoint, HasToBeServedByANodeOfAJobOfSeveral) {
  const Words leaves{"--nnodes", "2", "--rdzv-conf", "is_host=false,read_timeout=1"};
  const auto expect_refused = [&] {
    LrunProcess refused(job("yours", leaves, "echo started"));
    EXPECT_EQ(refused.wait().code, 125) << refused.err();
    for (const char* const option : {"is_host=false", "--rdzv-backend static", "--rdzv-backend etcd"}) {
      EXPECT_TRUE(contains(refused.err(), option)) << refused.err();
    }
    EXPECT_EQ(refused.out(), "");
  };
  expect_refused();
  LrunProcess first(job("mine", {"--nnodes", "1"}, "echo up; exec sleep 1000"));
  ASSERT_TRUE(first.wait_for("up")) << first.err();
  expect_refused();
  first.signal(SIGTERM);
  first.wait();
}

/// Without a name the job is known by what it runs.
TEST(TwoJobs, AreNotMergedWithAnotherJobByChance) {
  Job job({"--num_nodes", "2", "--rdzv-id", ""});
  LrunProcess& leader = job.start({"--node-rank", "0"}, {"echo", "a"});
  LrunProcess& other = job.start({"--node-rank", "1"}, {"echo", "b"});
  EXPECT_EQ(other.wait().code, 125) << other.err();
  EXPECT_TRUE(contains(other.err(), "another job uses this rendezvous: node '")) << other.err();
  EXPECT_TRUE(contains(other.err(), "runs 'echo' with other arguments")) << other.err();
  EXPECT_TRUE(contains(other.err(), "hint: give it the same arguments on every node")) << other.err();
  LrunProcess& different = job.start({"--node-rank", "1"}, {"true"});
  EXPECT_EQ(different.wait().code, 125) << different.err();
  EXPECT_TRUE(contains(different.err(), "hint: start the same program on every node")) << different.err();
  EXPECT_EQ(other.out(), "");
  LrunProcess& fitting = job.start({"--node-rank", "1"}, {"echo", "a"});
  EXPECT_EQ(fitting.wait().code, 0) << fitting.err();
  EXPECT_EQ(leader.wait().code, 0) << leader.err();
}

/// It was once a spare of the first, and ended with 0.
TEST(TwoJobs, AreNotMergedWithAJobOfTheSameNameAndAnotherProgram) {
  TemporaryFolder folder;
  const std::string end = (folder.path() / "end").string();
  Job job({"--num_nodes", "2"});
  const auto expect_refused = [&] {
    LrunProcess& other = job.start({"--node-rank", "1"}, {"echo", "b"});
    EXPECT_EQ(other.wait().code, 125) << other.err();
    EXPECT_TRUE(contains(other.err(), "another job named 'named' uses this rendezvous: node '")) << other.err();
    EXPECT_TRUE(contains(other.err(), "runs 'sh' and node '")) << other.err();
    EXPECT_TRUE(contains(other.err(), "' 'echo'\n")) << other.err();
    EXPECT_TRUE(contains(other.err(), "with etcd another '--rdzv-id'")) << other.err();
    EXPECT_EQ(other.out(), "");
  };
  const Words program = shell("echo up; while [ ! -e " + end + " ]; do sleep 0.1; done");
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  expect_refused();
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  ASSERT_TRUE(first.wait_for("up") && second.wait_for("up")) << first.err() << second.err();
  expect_refused();
  std::ofstream(end) << "now\n";
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.err();
}

}  // namespace
}  // namespace lrun::test
