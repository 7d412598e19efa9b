#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/duration.h"
#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"
#include "support/with_more_time.h"

namespace lrun::test {
namespace {

constexpr const char* kStuck = "echo begun; exec sleep 1000";

TEST(Hang, IsSeenExplainedAndStopped) {
  LrunProcess lrun({"-n", "2", "--hang-timeout", "400ms", "sh", "-c", kStuck});
  EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
  EXPECT_NE(lrun.err().find("no progress for 400ms"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("ranks 0-1"), std::string::npos) << "where they are: " << lrun.err();
  EXPECT_NE(lrun.err().find("no worker made progress for the 400ms of --hang-timeout"), std::string::npos)
      << lrun.err();
}

/// Ranks that wait in all_reduce(), and rank 1 in the function `other`: functions that are called as torch's, since
/// ranks are known to wait by the names of the calls.
std::string waits_in_vain(const std::string& other) {
  return R"(
import os, threading
lock = threading.Lock()
lock.acquire()
def )" + other +
         R"(():
    lock.acquire()
def all_reduce():
    lock.acquire()
)" + other +
         R"(() if os.environ["RANK"] == "1" else all_reduce()
)";
}

TEST(Hang, OfPythonRanksThatWaitInVainIsNotedWithoutAnyOption) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no Python here";
  LrunProcess lrun({"-n", "3", "/usr/bin/python3", "-c", waits_in_vain("evaluate")});
  ASSERT_TRUE(lrun.wait_for("no rank has moved for ")) << lrun.err();
  ASSERT_TRUE(lrun.wait_for("'lrun stack' shows all calls")) << lrun.err();
  EXPECT_NE(lrun.err().find(": 2 ranks wait in all_reduce at <string>:9; rank 1 is in futex(), called from evaluate "
                            "(<string>:6)\nlrun: hint: the others wait for rank 1; "),
            std::string::npos)
      << lrun.err();
  EXPECT_EQ(lrun.workers().size(), 3U) << "they go on";
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
}

TEST(Hang, OfPythonRanksOnSeveralNodesIsNotedOnEach) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no Python here";
  Job job({"--num-nodes", "2", "-n", "1"});
  const Words program{"/usr/bin/python3", "-c", waits_in_vain("barrier")};
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  for (LrunProcess* node : {&first, &second}) {
    ASSERT_TRUE(node->wait_for("all ranks have to call the same operations in the same order")) << node->err();
    EXPECT_TRUE(contains(node->err(),
                         ": rank 0 waits in all_reduce at <string>:9; rank 1 waits in barrier at "
                         "<string>:9\n"))
        << node->err();
  }
  for (LrunProcess* node : {&first, &second}) node->signal(SIGTERM);
  for (LrunProcess* node : {&first, &second}) node->wait();
}

TEST(Hang, IsExplainedByARankThatHasEnded) {
  with_more_time([](int factor) -> std::string {
    LrunProcess lrun({"-n", "3", "--hang-timeout", format_duration(1s * factor), "sh", "-c",
                      "[ $RANK = 1 ] && exit 0; exec sleep 1000"});
    EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
    const std::string words = "rank 1 has ended\n";
    return lrun.err().find(words) != std::string::npos ? "" : "it does not say '" + words + "': " + lrun.err();
  });
}

TEST(Hang, ARunThatPrintsDoesNotHang) {
  with_more_time([](int factor) -> std::string {
    LrunProcess lrun({"-n", "1", "--hang-timeout", format_duration(1s * factor), "sh", "-c",
                      "for i in 1 2 3 4 5 6; do echo $i; sleep \"$0\"; done", std::to_string(0.2 * factor)});
    return lrun.wait().code == 0 ? "" : "it was stopped: " + lrun.err();
  });
}

TEST(Hang, CanBeStartedAgain) {
  with_more_time([](int factor) -> std::string {
    LrunProcess lrun({"-n", "2", "--hang-timeout", format_duration(400ms * factor), "--on-hang=restart",
                      "--max-restarts=1", "sh", "-c",
                      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && echo well && exit 0; exec sleep 1000"});
    const int code = lrun.wait().code;
    EXPECT_NE(lrun.err().find("restart 1 of 1"), std::string::npos) << lrun.err();
    const bool well = code == 0 && lrun.out().find("[0] well") != std::string::npos;
    return well ? "" : "it was stopped again: " + lrun.out() + lrun.err();
  });
}

TEST(Hang, CanBeLookedAtOnly) {
  LrunProcess lrun({"-n", "1", "--hang-timeout", "400ms", "--on-hang=dump", "sh", "-c", kStuck});
  ASSERT_TRUE(lrun.wait_for("no progress for 400ms"));
  ASSERT_TRUE(lrun.wait_for("rank 0, pid "));
  EXPECT_FALSE(lrun.workers().empty());
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  EXPECT_EQ(lrun.err().find("seen before the stop"), std::string::npos) << "that was before: " << lrun.err();
}

TEST(Hang, WorkersFindTheirPlaceAndUnderTorchrunsNameOnlyThen) {
  const std::string tell = "echo place=$LRUN_PROGRESS_FD; readlink /proc/self/fd/3 || true";
  LrunProcess with({"-n", "2", "--hang-timeout", "1000s", "sh", "-c", tell});
  EXPECT_EQ(with.wait().code, 0) << with.err();
  EXPECT_NE(with.out().find("[1] place=3:64"), std::string::npos) << with.out();
  EXPECT_NE(with.out().find("lrun-progress"), std::string::npos) << with.out();
  LrunProcess always({"-n", "2", "sh", "-c", tell});
  EXPECT_EQ(always.wait().code, 0) << always.err();
  EXPECT_NE(always.out().find("[1] place=3:64"), std::string::npos) << always.out();
  LrunProcess without({"--compat=torchrun", "--nproc-per-node", "1", "--no-python", "sh", "-c", tell});
  EXPECT_EQ(without.wait().code, 0) << without.err();
  EXPECT_NE(without.out().find("place=\n"), std::string::npos) << without.out();
}

}  // namespace
}  // namespace lrun::test
