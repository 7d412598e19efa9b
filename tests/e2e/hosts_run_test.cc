// The head of a run on several hosts, in this process: its limits are ours to choose.
#include "cli/hosts_run.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "lrun_version.h"
#include "remote/ssh.h"
#include "support/temporary_folder.h"

namespace lrun::test {
namespace {

HostsRun::Start start_of(int index, const std::vector<std::string>& command) {
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
  return {order.name, false, command, {}, LRUN_PROGRAM, order};
}

/// The first host's ssh hangs until the second one, which is behind it, was connected to from here.
TEST(HostsRunTest, RunsWhereAHostOnTheWayAnswersLate) {
  const TemporaryFolder folder;
  ::setenv("LRUN_STATE", folder.path().c_str(), 1);
  ::signal(SIGPIPE, SIG_IGN);
  const std::string came = (folder.path() / "came").string();
  const std::string lrun = std::string("exec '") + LRUN_PROGRAM + "' ";
  HostsRun::Start first = start_of(0, {"sh", "-c", lrun + kNodeWord});
  first.relay_command = {"sh", "-c", "until [ -e " + came + " ]; do sleep 0.05; done; " + lrun + kRelayWord};
  const HostsRun::Start second =
      start_of(1, {"sh", "-c", "grep -q @relay /proc/$PPID/cmdline || touch " + came + "; " + lrun + kNodeWord});
  EventLoop loop;
  HostsRun run(loop, {first, second},
               {.master_addr = "127.0.0.1",
                .min_nodes = 2,
                .most_connections = 1,
                .detour_limit = Duration(100),
                .answer_limit = Duration(60'000),
                .grace = Duration(1000),
                .defaults = SpawnDefaults::of_this_process()});
  EXPECT_EQ(run.run().code, 0);
}

}  // namespace
}  // namespace lrun::test
