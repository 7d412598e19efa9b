#include "run/job_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/fake_job.h"

namespace lrun::launcher {
namespace {

/// The first of three nodes.
class JobStatusTest : public ::testing::Test {
 protected:
  static RunStatus status_of(const std::string& host) {
    return {
        .run_id = "r", .host = host, .nodes = 3, .pid = 10, .argv = {"./train"}, .world_size = 3, .phase = "running"};
  }

  void ask() {
    status.ask([this](const std::string& line) {
      answers.emplace_back();
      for (const RunStatus& launcher : job_status_from_json(line)) answers.back() += launcher.host;
      loop.stop();
    });
  }
  void other(const std::string& host) { job.status.other(to_json_within(status_of(host), 1000)); }

  EventLoop loop;
  FakeJob job;
  JobStatus status{loop, job, [] { return status_of("a"); }};
  std::vector<std::string> answers;  ///< the hosts of each
};

TEST_F(JobStatusTest, OfAllNodesIsAnsweredOnceTheyHaveTold) {
  ask();
  ask();
  EXPECT_EQ(job.calls, std::vector<std::string>{"ask"}) << "one question for both";
  other("b");
  other("b");
  EXPECT_TRUE(answers.empty());
  other("c");
  EXPECT_EQ(answers, (std::vector<std::string>{"abc", "abc"}));
  other("d");
  ask();
  EXPECT_EQ(job.calls.size(), 2U);
}

TEST_F(JobStatusTest, LeavesOutNodesThatSayNothing) {
  ask();
  other("c");
  job.status.other("what is this?");
  loop.run();
  EXPECT_EQ(answers, std::vector<std::string>{"ac"});
}

TEST_F(JobStatusTest, AnswersTheQuestionOfAnother) {
  const auto own = run_status_from_json(job.status.own());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->host, "a");
  EXPECT_TRUE(own->argv.empty()) << "all have the command";
}

}  // namespace
}  // namespace lrun::launcher
