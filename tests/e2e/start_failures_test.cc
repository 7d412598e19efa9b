// Launchers of one job, of which one finds that it cannot start its workers before it has met the others.
#include <gtest/gtest.h>

#include <fstream>

#include "support/launchers_of_a_job.h"

namespace lrun::test {
namespace {

/// A program that is there on some nodes.
class StartFailures : public ::testing::Test {
 protected:
  [[nodiscard]] Words there() const { return {worker_}; }
  static Words missing() { return {"/no/such/folder/worker"}; }
  void end() const { std::ofstream(end_) << "end\n"; }

  TemporaryFolder folder_;
  const std::string end_ = (folder_.path() / "end").string();
  const std::string worker_ =
      folder_.script("worker", "#!/bin/sh\necho up\nwhile [ ! -e " + end_ + " ]; do sleep 0.1; done\n");
};

TEST_F(StartFailures, EndAJobThatNeedsTheNodeEverywhereWithTheSameCode) {
  for (const char* const backend : {"static", "c10d"}) {
    for (const int failing : {0, 1}) {
      Job job({"--num_nodes", "2", "--rdzv-backend", backend});
      LrunProcess& first = job.start({"--node-rank", "0"}, failing == 0 ? missing() : there());
      LrunProcess& second = job.start({"--node-rank", "1"}, failing == 1 ? missing() : there());
      LrunProcess& here = failing == 0 ? first : second;
      LrunProcess& there = failing == 0 ? second : first;
      EXPECT_EQ(here.wait().code, 127) << here.err();
      EXPECT_EQ(there.wait().code, 127) << there.err();
      EXPECT_TRUE(contains(here.err(), "cannot run '/no/such/folder/worker': No such file or directory")) << here.err();
      EXPECT_TRUE(contains(there.err(), "lrun: error: node ")) << there.err();
      EXPECT_TRUE(contains(there.err(),
                           ": cannot run '/no/such/folder/worker': No such file or directory\n"
                           "lrun: hint: there is no folder '/no'\n"))
          << there.err();
      EXPECT_FALSE(contains(there.out(), "up")) << "nothing was started";
    }
  }
}

TEST_F(StartFailures, OfTheLauncherTellTheirReason) {
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, there());
  LrunProcess& second = job.start({"--node-rank", "1", "--log-dir", "/dev/null/logs"}, there());
  for (LrunProcess* node : {&first, &second}) {
    EXPECT_EQ(node->wait().code, 125) << node->err();
    EXPECT_TRUE(contains(node->err(), "cannot write logs in '/dev/null/logs': ")) << node->err();
  }
  EXPECT_TRUE(contains(first.err(), "lrun: error: the run was stopped: node ")) << first.err();
}

TEST_F(StartFailures, AreNotedByAJobThatCanDoWithoutTheNode) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, there());
  ASSERT_TRUE(first.wait_for("up")) << first.err();
  LrunProcess& second = job.start({"--node-rank", "1"}, missing());
  EXPECT_EQ(second.wait().code, 127) << second.err();
  EXPECT_TRUE(first.wait_for(" cannot take part: cannot run '/no/such/folder/worker': No such file or directory"))
      << first.err();
  end();
  EXPECT_EQ(first.wait().code, 0) << first.err();
}

TEST_F(StartFailures, OfTheHostOfTheRendezvousEndAJobThatCanDoWithoutOthers) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, missing());
  LrunProcess& second = job.start({"--node-rank", "1"}, there());
  for (LrunProcess* node : {&first, &second}) {
    EXPECT_EQ(node->wait().code, 127) << node->err();
    EXPECT_TRUE(
        contains(node->err(),
                 "lrun: hint: there is no folder '/no'; no job begins without the node that hosts its rendezvous\n"))
        << node->err();
  }
}

TEST_F(StartFailures, CanBeToldToNobodyWhereNobodyComes) {
  Job job({"--num_nodes", "2", "--rdzv-conf", "join_timeout=1"});
  LrunProcess& alone = job.start({"--node-rank", "1"}, missing());
  EXPECT_EQ(alone.wait().code, 127) << alone.err();
}

}  // namespace
}  // namespace lrun::test
