// --notice: this machine is about to go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/beside.h"
#include "support/elastic_jobs.h"
#include "support/lrun_process.h"
#include "support/temporary_folder.h"

namespace lrun::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Notice : public ElasticJobs {
 protected:
  void give(const std::string& line) const {
    std::ofstream(file() + ".new") << line;
    std::filesystem::rename(file() + ".new", file());
  }
  [[nodiscard]] std::string file() const { return (folder_.path() / "going").string(); }
  [[nodiscard]] std::string saved() const { return (folder_.path() / "saved").string(); }

  /// Prints 'ready', after SIGTERM 'saving' again and again, and 'saved' when the test has allowed it.
  [[nodiscard]] Words saves() const {
    return {
        "sh", "-c",
        "trap 'while [ ! -e " + saved() +
            " ]; do echo saving; sleep 0.01; done; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done"};
  }
  void let_save() const { std::ofstream(saved()).flush(); }
};

TEST_F(Notice, StopsTheRunAsSigtermDoes) {
  LrunProcess lrun(joined({"-n", "2", "--max-restarts", "3", "--notice", file()}, saves()));
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready")) << lrun.err();
  let_save();
  give("maintenance at 12\n");
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_THAT(lrun.out(), AllOf(HasSubstr("[0] saved"), HasSubstr("[1] saved")));
  const std::string why = "notice from '" + file() + "': maintenance at 12";
  EXPECT_THAT(lrun.err(), HasSubstr("lrun: note: " + why + "; stopping 2 workers (up to 30s)\n"));
  Beside explain(lrun, {"explain", "--json"});
  EXPECT_EQ(explain.wait().code, 0) << explain.err();
  EXPECT_THAT(explain.out(), AllOf(HasSubstr("\"reason\":\"notice\""), HasSubstr(why)));
  Beside status(lrun, {"status"});
  (void)status.wait();
  EXPECT_THAT(status.out() + status.err(), HasSubstr("ago: notice;"));
  Beside report(lrun, {"report"});
  EXPECT_EQ(report.wait().code, 0) << report.err();
  EXPECT_THAT(report.out(), AllOf(HasSubstr(why + ": stopping 2 workers"), Not(HasSubstr("received SIGTERM"))));
}

TEST_F(Notice, IsNotHurriedByTheSigtermThatFollows) {
  LrunProcess lrun(joined({"-n", "1", "--notice", file()}, saves()));
  ASSERT_TRUE(lrun.wait_for("ready")) << lrun.err();
  give("");
  ASSERT_TRUE(lrun.wait_for("saving")) << lrun.err();
  lrun.signal(SIGTERM);  // as at the end of the machine
  const std::size_t seen = count(lrun.out(), "saving");
  EXPECT_TRUE(lrun.read_until([&] { return count(lrun.out(), "saving") > seen + 30; })) << "it goes on saving";
  let_save();
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_THAT(lrun.out(), HasSubstr("saved"));
}

TEST_F(Notice, IsHurriedByAPerson) {
  LrunProcess lrun(joined({"-n", "1", "--grace", "10min", "--notice", file()}, saves()));
  ASSERT_TRUE(lrun.wait_for("ready")) << lrun.err();
  give("");
  ASSERT_TRUE(lrun.wait_for("saving")) << lrun.err();
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_THAT(lrun.out(), Not(HasSubstr("saved")));
}

TEST_F(Notice, EndsTheWaitForTheNextAttempt) {
  LrunProcess lrun({"-n", "1", "--max-restarts", "3", "--restart-backoff", "10min", "--notice", file(), "sh", "-c",
                    "exit $((TORCHELASTIC_RESTART_COUNT + 1))"});
  ASSERT_TRUE(lrun.wait_for("restart 2 of 3 in 10m")) << lrun.err();
  give("");
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_THAT(lrun.err(), HasSubstr("notice from '" + file() + "'"));
}

TEST_F(Notice, StopsOnlyItsNodeOfAnElasticJob) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& stays =
      job.start({"--node-rank", "0"}, {"sh", "-c", "echo $WORLD_SIZE ranks; [ $WORLD_SIZE = 1 ] || exec sleep 1000"});
  LrunProcess& goes = job.start({"--node-rank", "1", "--notice", file()}, saves());
  ASSERT_TRUE(goes.wait_for("ready")) << goes.err();
  let_save();
  give("");
  EXPECT_EQ(goes.wait().signal_number, SIGTERM) << goes.err();
  EXPECT_THAT(goes.out(), HasSubstr("saved"));
  EXPECT_EQ(stays.wait().code, 0) << stays.err();
  EXPECT_THAT(stays.out(), HasSubstr("1 ranks"));
  EXPECT_THAT(stays.err(), HasSubstr("its lrun got a notice from '" + file() + "' and left the job"));
}

TEST_F(Notice, OfTheLeaderStopsTheOthersWithIt) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& goes = job.start({"--node-rank", "0", "--notice", file()}, saves());
  LrunProcess& stays =
      job.start({"--node-rank", "1"}, {"sh", "-c",
                                       "[ $WORLD_SIZE = 2 ] || exit 0; trap 'echo told; exit 0' TERM; echo ready; "
                                       "while :; do sleep 0.01; done"});
  ASSERT_TRUE(goes.wait_for("ready") && stays.wait_for("ready")) << goes.err() << stays.err();
  give("");
  EXPECT_TRUE(stays.wait_for("told")) << "while the leader's workers save: " << stays.err();
  EXPECT_THAT(stays.err(), HasSubstr("its lrun got a notice from '" + file() + "' and left the job"));
  let_save();
  EXPECT_EQ(goes.wait().signal_number, SIGTERM) << goes.err();
  EXPECT_EQ(stays.wait().code, 0) << stays.err();
}

TEST_F(Notice, OfALeaderThatWaitsForTheNextAttemptLeavesTheOthersTheirJob) {
  Job job({"--nnodes", "1:2", "--max-restarts", "3", "--restart-backoff", "3s"});
  const Words fails = {"sh", "-c",
                       "[ $WORLD_SIZE = 1 ] && exit 0; [ $RANK = 0 ] && exec sleep 1000; "
                       "exit $((TORCHELASTIC_RESTART_COUNT + 4))"};
  LrunProcess& goes = job.start({"--node-rank", "0", "--notice", file()}, fails);
  LrunProcess& stays = job.start({"--node-rank", "1"}, fails);
  ASSERT_TRUE(goes.wait_for("restart 2 of 3 in 3s")) << goes.err() << stays.err();
  give("");
  EXPECT_EQ(goes.wait().signal_number, SIGTERM) << goes.err();
  EXPECT_EQ(stays.wait().code, 0) << stays.err();
}

TEST_F(Notice, LeavesAJobOfAFixedSizeAPlaceForAnotherNode) {
  Job job({"--nnodes", "2"});
  LrunProcess& waits = job.start({"--node-rank", "0"}, program());
  LrunProcess& goes = job.start({"--node-rank", "1", "--notice", file()}, saves());
  ASSERT_TRUE(goes.wait_for("ready") && waits.wait_for("rank ")) << goes.err();
  let_save();
  give("");
  EXPECT_EQ(goes.wait().signal_number, SIGTERM) << goes.err();
  ASSERT_TRUE(waits.wait_for("left the job; 1 of 2 nodes is left, which waits up to 10m for others")) << waits.err();
  LrunProcess& another = job.start({"--node-rank", "1"}, program());
  ASSERT_TRUE(another.wait_for("rank ")) << another.err();
  end();
  expect_success({&waits, &another});
}

TEST_F(Notice, KeepsItsNodeFromAJobThatRuns) {
  Job job({"--nnodes", "1:2"});
  LrunProcess& stays = job.start({}, program());
  ASSERT_TRUE(stays.wait_for("rank 0/1")) << stays.err();
  give("maintenance");
  LrunProcess& goes = job.start({"--notice", file()}, program());
  EXPECT_EQ(goes.wait().signal_number, SIGTERM) << goes.err();
  EXPECT_THAT(goes.err(), HasSubstr("notice from '" + file() + "': maintenance; nothing was started\n"));
  end();
  EXPECT_EQ(stays.wait().code, 0) << stays.err();
  EXPECT_THAT(stays.out(), Not(HasSubstr("count 1."))) << "its workers were not disturbed";
}

TEST_F(Notice, EndsTheWaitForOtherNodes) {
  Job job({"--nnodes", "2"});
  LrunProcess& waits = job.start({"--notice", file()}, program());
  ASSERT_TRUE(waits.wait_for("waiting for other nodes")) << waits.err();
  give("");
  EXPECT_EQ(waits.wait().signal_number, SIGTERM) << waits.err();
  EXPECT_THAT(waits.err(), HasSubstr("notice from '" + file() + "' while waiting for other nodes"));
}

TEST_F(Notice, KeepsARunFromStarting) {
  give("");
  LrunProcess lrun({"-n", "1", "--notice", file(), "sh", "-c", "echo started"});
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_EQ(lrun.out(), "");
  EXPECT_EQ(lrun.err(), "lrun: note: notice from '" + file() +
                            "'; nothing was started\n"
                            "lrun: hint: remove the file where it is left from before\n");
}

TEST_F(Notice, IsNoNewsWhereLrunIsKilled) {
  LrunProcess lrun({"-n", "1", "--notice", file(), "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("ready")) << lrun.err();
  lrun.signal(SIGKILL);
  (void)lrun.wait();
  EXPECT_THAT(lrun.err(), Not(HasSubstr("--notice")));
}

TEST_F(Notice, IsNeededForNoRunThatEnds) {
  LrunProcess lrun({"-n", "1", "--notice", file(), "true"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.err(), "");
}

TEST_F(Notice, MustBeACloudOrTheNameOfAFile) {
  LrunProcess cloud({"-n", "1", "--notice", "amazon", "true"});
  EXPECT_EQ(cloud.wait().code, 125);
  EXPECT_THAT(cloud.err(), HasSubstr("neither a cloud nor a file; allowed: aws, azure, gcp, or a path with a '/'"));
  LrunProcess folder({"-n", "1", "--notice", folder_.path().string() + "/", "true"});
  EXPECT_EQ(folder.wait().code, 125);
  EXPECT_THAT(folder.err(), AllOf(HasSubstr("it is a folder"), HasSubstr("/going'")));
  LrunProcess no_name({"-n", "1", "--notice", file() + "/", "true"});
  EXPECT_EQ(no_name.wait().code, 125);
  EXPECT_THAT(no_name.err(), HasSubstr("it is a folder"));
  LrunProcess mistyped({"-n", "1", "--notice", file() + "/x", "true"});
  EXPECT_EQ(mistyped.wait().code, 0);
  EXPECT_THAT(mistyped.err(), HasSubstr("warning: --notice: no folder '" + file() + "' is here yet"));
}

}  // namespace
}  // namespace lrun::test
