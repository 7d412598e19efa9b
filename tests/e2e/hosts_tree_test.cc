// A run on more hosts than one lrun connects to: some are reached through others. A script takes ssh's part: all of
// them are this machine.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/lrun_process.h"
#include "support/temporary_folder.h"
#include "support/words.h"

namespace lrun::test {
namespace {

/// Writes down who connects to whom: 'h1 head' or 'h33 relay'. Hosts whose name begins with 'far' are out of a relay's
/// reach, and nobody reaches those that begin with 'refused'.
constexpr const char* kFakeSsh = R"(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
grep -q @relay /proc/$PPID/cmdline && by=relay || by=head
echo "$1 $by" >>"${0%/*}/ways"
case $1-$by in
  far*-relay) echo "Permission denied (publickey)." >&2; exit 255 ;;
  refused*) echo "connect to host $1 by $by: Connection refused" >&2; exit 255 ;;
esac
export SSH_CONNECTION="127.0.0.1 40000 127.0.0.1 22" HOST_NAME=$1
exec sh -c "$2"
)";

constexpr int kHosts = 34;

class HostsTree : public testing::Test {
 protected:
  HostsTree() {
    std::ofstream(path("ssh")) << kFakeSsh;
    ::chmod(path("ssh").c_str(), 0755);
    for (int i = 1; i <= kHosts; ++i) names_.push_back("h" + std::to_string(i));
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  /// lrun with these words on all hosts, one worker each.
  [[nodiscard]] Words words(const Words& rest) const {
    std::string list;
    for (const std::string& name : names_) list += (list.empty() ? "" : ",") + name + ":1";
    Words all{"--ssh", path("ssh"), "-H", list};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }

  [[nodiscard]] std::string ways() const {
    std::ifstream file(path("ways"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder folder_;
  Words names_;
};

TEST_F(HostsTree, ReachesEveryHostAndNoneTwiceFromTheHead) {
  names_[kHosts - 1] = "far";
  LrunProcess lrun(words({"sh", "-c", "echo $RANK/$WORLD_SIZE on $HOST_NAME"}));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  for (int i = 0; i < kHosts; ++i) {
    const std::string line = "] " + std::to_string(i) + "/34 on " + names_[static_cast<std::size_t>(i)] + "\n";
    EXPECT_EQ(count(lrun.out(), line), 1U) << line << lrun.out() << lrun.err();
  }
  EXPECT_EQ(count(ways(), " head\n"), 33U) << "those that it may connect to, and who is out of a relay's reach";
  EXPECT_TRUE(contains(ways(), "h33 relay\n") && contains(ways(), "far relay\n") && contains(ways(), "far head\n"))
      << ways();
}

TEST_F(HostsTree, TellsOfAllThatCannotBeUsedInOneTable) {
  names_[0] = "refused1";  // others are behind it
  names_[33] = "refused34";
  const std::string started = path("started");
  LrunProcess lrun(words({"touch", started}));
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(),
                       "lrun: error: 2 of 34 hosts cannot be used; nothing was started\n"
                       "  | refused1   connect to host refused1 by head: Connection refused\n"
                       "  | refused34  connect to host refused34 by head: Connection refused\n"))
      << lrun.err();
  EXPECT_TRUE(contains(ways(), "h33 head\n")) << "its way was lost: " << ways();
  EXPECT_FALSE(std::filesystem::exists(started));
}

TEST_F(HostsTree, StopsAllPolitely) {
  LrunProcess lrun(words({"sh", "-c", "trap 'echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.2; done"}));
  ASSERT_TRUE(lrun.read_until([&] { return count(lrun.out(), "ready") == kHosts; })) << lrun.err();
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM) << lrun.err();
  EXPECT_EQ(count(lrun.out(), "stopped"), static_cast<std::size_t>(kHosts)) << lrun.err();
}

TEST_F(HostsTree, LeavesNothingBehindWhenTheHeadIsKilled) {
  LrunProcess lrun(words({"sh", "-c", "trap '' TERM HUP; echo ready; sleep 1000; sleep 1000"}));
  ASSERT_TRUE(lrun.read_until([&] { return count(lrun.out(), "ready") == kHosts; })) << lrun.err();
  ::kill(lrun.pid(), SIGKILL);
  EXPECT_EQ(lrun.wait().signal_number, SIGKILL);
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); })) << "something has survived";
}

/// Process ids of relays below lrun.
std::vector<pid_t> relays_of(const LrunProcess& lrun) {
  std::vector<pid_t> found;
  for (const pid_t pid : lrun.processes()) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    const std::string words{std::istreambuf_iterator<char>(file), {}};
    if (words.ends_with(std::string("\0@relay\0", 8))) found.push_back(pid);
  }
  return found;
}

TEST_F(HostsTree, NamesWhoWasBehindAHostThatIsLost) {
  LrunProcess lrun(words({"--grace", "5s", "sh", "-c", "trap '' TERM; echo ready; exec sleep 1000"}));
  ASSERT_TRUE(lrun.read_until([&] { return count(lrun.out(), "ready") == kHosts; })) << lrun.err();
  const std::vector<pid_t> relays = relays_of(lrun);
  ASSERT_EQ(relays.size(), 2U);
  ::kill(relays.front(), SIGKILL);
  EXPECT_EQ(lrun.wait().code, 125);
  const bool of_first = contains(lrun.err(), "warning: the connections to h1 and h33 were lost: ");
  EXPECT_TRUE(of_first || contains(lrun.err(), "warning: the connections to h2 and h34 were lost: ")) << lrun.err();
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); })) << "something has survived";
}

}  // namespace
}  // namespace lrun::test
