// Connections to hosts that end while a job runs. A script takes ssh's part: all hosts are this machine.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "support/lrun_process.h"
#include "support/temporary_folder.h"
#include "support/words.h"

namespace lrun::test {
namespace {

/// Of its process there is a file 'pid_HOST'.
constexpr const char* kFakeSsh = R"sh(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
export SSH_CONNECTION="127.0.0.1 40000 127.0.0.1 22" HOST_NAME=$1
echo $$ >"${0%/*}/pid_$1"
echo "Welcome to $1"
echo "have a nice day" >&2
sh -c "$2"
)sh";

/// Each worker tells its place and waits, but for those of a world of `enough`, who end well.
std::string work_until(int enough) {
  return "echo $RANK/$WORLD_SIZE on $HOST_NAME; [ $WORLD_SIZE = " + std::to_string(enough) + " ] || exec sleep 1000";
}

class HostsLoss : public testing::Test {
 protected:
  HostsLoss() { (void)folder_.script("ssh", kFakeSsh); }

  [[nodiscard]] LrunProcess::Options options() const {
    return {.environment = {{"LRUN_SSH", (folder_ / "ssh").string()}}};
  }

  /// A run of a, b and c, with a worker each, that has begun.
  [[nodiscard]] static bool begun(LrunProcess& lrun) {
    return lrun.read_until([&] { return count(lrun.out(), "/3 on ") == 3; });
  }

  void cut(const std::string& host) const {
    std::ifstream file(folder_ / ("pid_" + host));
    pid_t pid = 0;
    ASSERT_TRUE(file >> pid) << host;
    EXPECT_EQ(::kill(pid, SIGKILL), 0);
  }

  TemporaryFolder folder_;
};

TEST_F(HostsLoss, OfOneConnectionIsTheLossOfThatNode) {
  LrunProcess lrun(joined({"-H", "a:1,b:1,c:1", "--nnodes", "2:3"}, shell(work_until(2))), options());
  ASSERT_TRUE(begun(lrun)) << lrun.err();
  cut("c");
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.out(), "0/2 on a\n") && contains(lrun.out(), "1/2 on b\n")) << lrun.out();
  EXPECT_TRUE(contains(lrun.err(), "lrun: warning: the connection to c was lost: ssh died of SIGKILL")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(),
                       "node c is lost: the connection from the lrun that started it was lost; "
                       "2 of 2:3 nodes go on"))
      << lrun.err();
}

TEST_F(HostsLoss, OfTheConnectionToTheFirstHostIsNoOther) {
  LrunProcess lrun(joined({"-H", "a:1,b:1,c:1", "--nnodes", "2:3"}, shell(work_until(2))), options());
  ASSERT_TRUE(begun(lrun)) << lrun.err();
  cut("a");
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  for (const char* const place : {"/2 on b\n", "/2 on c\n"}) EXPECT_TRUE(contains(lrun.out(), place)) << lrun.out();
  EXPECT_TRUE(contains(lrun.err(), "the connection to a was lost")) << lrun.err();
}

TEST_F(HostsLoss, EndsAJobThatNeedsAllItsNodes) {
  for (const char* const host : {"a", "c"}) {
    LrunProcess lrun(joined({"-H", "a:1,b:1,c:1"}, shell("trap '' HUP; " + work_until(2))), options());
    ASSERT_TRUE(begun(lrun)) << lrun.err();
    cut(host);
    EXPECT_EQ(lrun.wait().code, 125) << lrun.err();
    EXPECT_TRUE(contains(lrun.err(), std::string("the connection to ") + host + " was lost")) << lrun.err();
    const std::string verdict = lrun.err().substr(std::min(lrun.err().find("lrun: error: "), lrun.err().size()));
    EXPECT_TRUE(contains(verdict, std::string("node ") + host)) << lrun.err();
    EXPECT_TRUE(contains(verdict, "the connection from the lrun that started it was lost")) << lrun.err();
    EXPECT_FALSE(contains(lrun.err(), "SIGHUP")) << "nobody sent one: " << lrun.err();
    EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); })) << "something has survived";
  }
}

TEST_F(HostsLoss, OfAllWithTheHeadEndsAJobThatCouldDoWithoutSome) {
  LrunProcess lrun(
      joined({"-H", "a:1,b:1,c:1", "--nnodes", "1:3"}, shell("trap '' TERM HUP; echo $RANK/$WORLD_SIZE on $HOST_NAME; "
                                                             "sleep 1000; sleep 1000")),
      options());
  ASSERT_TRUE(begun(lrun)) << lrun.err();
  ::kill(lrun.pid(), SIGKILL);
  EXPECT_EQ(lrun.wait().signal_number, SIGKILL);
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); })) << "something has survived";
}

}  // namespace
}  // namespace lrun::test
