// What lrun does like the launcher of DeepSpeed under its strategy.
#include <gtest/gtest.h>

#include "cluster/user_hosts.h"
#include "plan/host_workers.h"
#include "plan/worker_command.h"
#include "planning.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

LaunchRequest under_deepspeed(const Words& command) {
  LaunchRequest request = request_for("2");
  request.command = command;
  request.strategy = strategy_flag("deepspeed");
  return request;
}

/// What the worker of local rank 1 executes.
Words second_worker(const LaunchRequest& request, const AllocatedNode& node = cpu_node()) {
  const LaunchPlan plan = plan_of(request, node);
  return command_of(plan, plan.nodes.front(), plan.nodes.front().workers.at(1), 0);
}

TEST(DeepSpeed, PutsTheLocalRankBeforeTheArgumentsOfTheProgram) {
  EXPECT_EQ(second_worker(under_deepspeed({"train.py", "--deepspeed"})),
            (Words{"python3", "-u", "train.py", "--local_rank=1", "--deepspeed"}));
  EXPECT_EQ(second_worker(under_deepspeed({"./train"})), (Words{"./train", "--local_rank=1"}));
  LaunchRequest module = under_deepspeed({"pack.train", "a"});
  module.module = true;
  EXPECT_EQ(second_worker(module), (Words{"python3", "-u", "-m", "pack.train", "--local_rank=1", "a"}));
}

TEST(DeepSpeed, LeavesTheLocalRankOutWhenAsked) {
  LaunchRequest request = under_deepspeed({"train.py", "--deepspeed"});
  request.no_local_rank = true;
  EXPECT_EQ(second_worker(request), (Words{"python3", "-u", "train.py", "--deepspeed"}));
  request.strategy = strategy_flag("ddp");
  request.no_local_rank = false;
  EXPECT_EQ(second_worker(request), (Words{"python3", "-u", "train.py", "--deepspeed"})) << "only under its strategy";
}

TEST(DeepSpeed, TellsTheLocalRankOfTheVariableWhereGpusAreIsolated) {
  LaunchRequest request = under_deepspeed({"./train"});
  request.isolate_gpus = true;
  EXPECT_EQ(second_worker(request, gpu_node(2)), (Words{"./train", "--local_rank=0"}))
      << "DeepSpeed refuses an argument that differs from LOCAL_RANK";
}

TEST(DeepSpeed, IsOneWorkerADeviceOnEveryNode) {
  LaunchRequest request = under_deepspeed({"./train"});
  request.num_nodes = {3, Source::kFlag, "--num_nodes"};
  const LaunchPlan plan = plan_of(request, gpu_node(4));
  EXPECT_EQ(plan.world_size, 6);
  EXPECT_EQ(text_of(plan.strategy.value), "deepspeed");
  EXPECT_EQ(plan.nodes.front().workers.front().visible_devices, "0,1") << "all of the node's chosen ones";
}

std::string counted(const std::string& hosts, LaunchRequest request) {
  return in_words(used_hosts(parse_host_list(hosts, "-H"), request));
}

TEST(DeepSpeed, TakesTheFirstHostsAndTheFirstDevicesOfEach) {
  LaunchRequest request = under_deepspeed({"./train"});
  request.devices = {};
  EXPECT_EQ(counted("a:4,b:4,c:4", request), "a:4,b:4,c:4");
  request.num_nodes = {2, Source::kFlag, "--num_nodes"};
  EXPECT_EQ(counted("a:4,b:4,c:4", request), "a:4,b:4");
  request.devices = devices_flag("2", "--num_gpus");
  EXPECT_EQ(counted("a:4,b:4,c:4", request), "a:2,b:2");
  EXPECT_EQ(counted("a:4,b:1", request), "a:2,b:1") << "too many is refused later, by name";
  EXPECT_EQ(counted("a,b,c", request), "a,b");
  request.strategy = strategy_flag("ddp");
  EXPECT_EQ(counted("a:4,b:4,c:4", request), "a:4,b:4,c:4") << "elsewhere that is a contradiction";
}

TEST(DeepSpeed, KeepsTheDevicesThatAreNamedOfAHost) {
  LaunchRequest request = under_deepspeed({"./train"});
  std::vector<Host> hosts = parse_host_list("a:4,b:4", "-H");
  hosts[0].devices = {1, 2, 3};
  hosts[0].slots = 3;
  EXPECT_EQ(used_hosts(hosts, request)[0], hosts[0]);
  EXPECT_EQ(used_hosts(hosts, request)[1].slots, 2);
}

}  // namespace
}  // namespace lrun::launcher
