// The head of a run on several hosts, in this process: its limits are ours to choose.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "lrun_version.h"
#include "multihost/head.h"
#include "remote/host_links.h"
#include "remote/host_ways.h"
#include "remote/ssh.h"
#include "support/lrun_process.h"
#include "support/temporary_folder.h"
#include "support/with_more_time.h"

namespace lrun::test {
using namespace launcher;
namespace {

/// One host, and how it is reached.
struct HostStart {
  Head::Host host;
  std::vector<std::string> command;
  std::vector<std::string> relay_command = {};
};

HostStart start_of(int index, const std::vector<std::string>& command) {
  NodeOrder order;
  order.version = LRUN_VERSION;
  order.command = {"true"};
  order.folder = "/";
  order.nodes = {"h1", "h2"};
  order.node_rank = index;
  order.name = order.nodes[static_cast<std::size_t>(index)];
  order.devices = "1";
  order.run_name = "detour";
  order.secret = "a secret";
  return {{false, order}, command};
}

/// Runs a head, which makes at most so many connections itself.
Head::End run_head(const std::vector<HostStart>& starts, Head::Options options,
                   std::size_t most_connections = kMostConnections, const std::string& first_bytes = "") {
  std::vector<Head::Host> hosts;
  std::vector<HostLinks::Host> ends;
  for (const HostStart& start : starts) {
    hosts.push_back(start.host);
    ends.push_back({start.host.order.name, false, start.command, start.relay_command});
  }
  options.program = LRUN_PROGRAM;
  options.grace = Duration(1000);
  EventLoop loop;
  HostOutput output(loop, hosts.size(), LogOptions{}, false);
  Head head(loop, std::move(hosts), std::move(options), output, output, [&](HeadLinks::Events events) {
    const std::vector<bool> here(starts.size(), false);
    return std::make_unique<HostLinks>(
        loop, std::move(ends),
        HostLinks::Options{host_ways(here, most_connections), SpawnDefaults::of_this_process(), first_bytes},
        std::move(events));
  });
  return head.run();
}

/// The first host's ssh hangs until the second one, which is behind it, was connected to from here.
TEST(HostsRunTest, RunsWhereAHostOnTheWayAnswersLate) {
  const TemporaryFolder folder;
  ::setenv("LRUN_STATE", folder.path().c_str(), 1);
  ::signal(SIGPIPE, SIG_IGN);
  const std::string came = (folder.path() / "came").string();
  const std::string lrun = std::string("exec '") + LRUN_PROGRAM + "' ";
  HostStart first = start_of(0, {"sh", "-c", lrun + kNodeWord});
  first.relay_command = {"sh", "-c", "until [ -e " + came + " ]; do sleep 0.05; done; " + lrun + kRelayWord};
  const HostStart second =
      start_of(1, {"sh", "-c", "grep -q @relay /proc/$PPID/cmdline || touch " + came + "; " + lrun + kNodeWord});
  const Head::Options options{
      .master_addr = "127.0.0.1", .min_nodes = 2, .detour_limit = Duration(100), .answer_limit = Duration(60'000)};
  EXPECT_EQ(run_head({first, second}, options, 1).code, 0);
}

/// What a run on one host comes to that takes a copy piece by piece, with a pause before each, and then no more for a
/// while.
Head::End run_with_copy(Duration limit, Duration pause, int pieces, const std::string& then) {
  constexpr std::size_t kPiece = 65'536;  // what a pipe holds
  const TemporaryFolder folder;
  ::setenv("LRUN_STATE", folder.path().c_str(), 1);
  ::signal(SIGPIPE, SIG_IGN);
  const std::string take = fmt::format("for piece in $(seq {}); do sleep {}; dd bs={} count=1 iflag=fullblock; done",
                                       pieces, static_cast<double>(pause.count()) / 1000, kPiece);
  HostStart start = start_of(
      0, {"sh", "-c", "{ " + take + "; } >/dev/null 2>&1; " + then + "; exec '" + LRUN_PROGRAM + "' " + kNodeWord});
  start.host.order.nodes = {"h1"};
  return run_head({start}, {.answer_limit = limit}, kMostConnections,
                  std::string(kPiece * static_cast<std::size_t>(pieces), 'x'));
}

TEST(HostsRunTest, WaitsForACopyThatMovesForAsLongAsItTakes) {
  with_more_time([](int factor) -> std::string {
    const Duration limit = Duration(500) * factor;
    return run_with_copy(limit, limit * 3 / 5, 4, "true").code == 0 ? "" : "it was given up";
  });
}

TEST(HostsRunTest, DoesNotWaitForACopyThatStandsStill) {
  const SteadyTime begun = steady_now();
  EXPECT_EQ(run_with_copy(Duration(300), Duration(10), 4, "sleep 1000").code, 125);
  EXPECT_LT(steady_now() - begun, kPatience);
}

/// Takes ssh's part: all hosts are this machine. Writes down who connects to whom, 'h3 by h1', and each process that
/// it becomes. Only the head knows hosts whose name begins with 'alias', as by its ~/.ssh/config.
constexpr const char* kFakeSsh = R"(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
echo "$1 by ${HOST_NAME:-head}" >>"${0%/*}/ways"
case $1-${HOST_NAME:-head} in
  alias*-head) ;;
  alias*) echo "ssh: Could not resolve hostname $1: Name or service not known" >&2; exit 255 ;;
esac
export SSH_CONNECTION="127.0.0.1 40000 127.0.0.1 22" HOST_NAME=$1
echo $$ >"${0%/*}/process.$1"
exec sh -c "$2"
)";

/// Ten hosts of which nobody connects to more than two: the head to 1 and 2, these to 3 and 5, and to 4 and 6, and
/// those to 7, 9, 8 and 10.
class HostsRunOfThreeLevels : public testing::Test {
 protected:
  HostsRunOfThreeLevels() : ssh_(folder_.script("ssh", kFakeSsh)) {
    ::setenv("LRUN_STATE", folder_.path().c_str(), 1);
    ::signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i <= 10; ++i) names_.push_back("h" + std::to_string(i));
  }

  void rename(std::size_t host, const std::string& name) { names_.at(host - 1) = name; }

  /// Runs it with a worker on each host, in the test's folder. \return the code
  int run(const std::string& script) {
    std::vector<HostStart> starts;
    for (std::size_t i = 0; i < names_.size(); ++i) starts.push_back(start_on(i, script));
    return run_head(starts,
                    {.master_addr = "127.0.0.1",
                     .min_nodes = static_cast<int>(names_.size()),
                     .detour_limit = Duration(60'000),
                     .answer_limit = Duration(60'000)},
                    2)
        .code;
  }

  [[nodiscard]] std::multiset<std::string> lines(const std::string& file) const {
    std::ifstream input(folder_ / file);
    std::multiset<std::string> found;
    for (std::string line; std::getline(input, line);) found.insert(line);
    return found;
  }

  [[nodiscard]] static std::multiset<std::string> all_ranks() {
    return {"0/10", "1/10", "2/10", "3/10", "4/10", "5/10", "6/10", "7/10", "8/10", "9/10"};
  }

  TemporaryFolder folder_;

 private:
  [[nodiscard]] HostStart start_on(std::size_t index, const std::string& script) const {
    const Host host{.name = names_[index]};
    HostStart start = start_of(0, ssh_command({ssh_}, host, LRUN_PROGRAM, kNodeWord));
    start.relay_command = ssh_command({ssh_}, host, LRUN_PROGRAM, kRelayWord);
    NodeOrder& order = start.host.order;
    order.name = host.name;
    order.node_rank = static_cast<int>(index);
    order.nodes = names_;
    order.folder = folder_.path().string();
    order.needs_folder = true;
    order.command = {"sh", "-c", script};
    return start;
  }

  std::string ssh_;
  std::vector<std::string> names_;
};

TEST_F(HostsRunOfThreeLevels, ReachesEachHostOnce) {
  EXPECT_EQ(run("echo $RANK/$WORLD_SIZE >>ranks"), 0);
  EXPECT_EQ(lines("ranks"), all_ranks());
  EXPECT_EQ(lines("ways"), (std::multiset<std::string>{"h1 by head", "h2 by head", "h3 by h1", "h5 by h1", "h4 by h2",
                                                       "h6 by h2", "h7 by h3", "h8 by h4", "h9 by h5", "h10 by h6"}));
}

TEST_F(HostsRunOfThreeLevels, ReachesFromTheHeadWhoOnlyTheHeadKnows) {
  rename(8, "alias8");  // the last on its way
  rename(5, "alias5");  // 9 is behind it
  EXPECT_EQ(run("echo $RANK/$WORLD_SIZE >>ranks"), 0);
  EXPECT_EQ(lines("ranks"), all_ranks());
  EXPECT_EQ(lines("ways"), (std::multiset<std::string>{"h1 by head", "h2 by head", "h3 by h1", "h4 by h2", "h6 by h2",
                                                       "h7 by h3", "h10 by h6", "alias8 by h4", "alias8 by head",
                                                       "alias5 by h1", "alias5 by head", "h9 by head"}));
}

[[nodiscard]] bool sleeps(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/cmdline", std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  return words.starts_with("sleep");
}

/// 3, 5, 7 and 9 are behind it, and lose their connections with it.
TEST_F(HostsRunOfThreeLevels, EndsEverywhereWhenTheFirstOnTheWayIsLost) {
  EXPECT_NE(run("echo $$ >>workers; if [ $RANK = 9 ]; then until [ $(wc -l <workers) = 10 ]; do sleep 0.05; done; "
                "kill -9 $(cat process.h1); fi; exec sleep 1000"),
            0);
  const std::multiset<std::string> workers = lines("workers");
  EXPECT_EQ(workers.size(), 10U);
  EXPECT_TRUE(eventually([&] { return std::none_of(workers.begin(), workers.end(), sleeps); }))
      << "a worker has survived";
}

}  // namespace
}  // namespace lrun::test
