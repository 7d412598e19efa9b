#include "plan/host_place.h"

#include <gtest/gtest.h>

#include <string>

#include "support/mentions.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

LaunchRequest request_on(const std::string& hosts) {
  LaunchRequest request = request_for("");
  request.hosts = hosts_flag(hosts);
  return request;
}

LaunchRequest placed_by(const LaunchRequest& request) { return placed_on_hosts(request, hosts_of(request)); }

LaunchPlan shown(LaunchRequest request, const AllocatedNode& here = cpu_node()) {
  request.dry_run = DryRun::kText;
  const std::vector<Host> hosts = hosts_of(request);
  const LaunchRequest placed = placed_on_hosts(request, hosts);
  return make_plan(placed, Environment(), allocation_of_hosts(placed, hosts, here), {true, ""}, "demo");
}

TEST(HostPlace, GivesEveryHostItsOwnNumberOfWorkers) {
  const LaunchPlan plan = shown(request_on("a:4,b:2"));
  EXPECT_EQ(plan.world_size, 6);
  ASSERT_EQ(plan.nodes.size(), 2U);
  EXPECT_EQ(plan.nodes[0].name, "a");
  EXPECT_EQ(plan.nodes[0].workers.size(), 4U);
  EXPECT_EQ(plan.nodes[1].name, "b");
  EXPECT_EQ(plan.nodes[1].base_rank, 4);
  EXPECT_EQ(text_of(plan.strategy.value), "ddp");
}

TEST(HostPlace, TakesTheOptionsWhereTheListHasNoNumbers) {
  LaunchRequest request = request_on("a,b");
  request.devices = devices_flag("3");
  EXPECT_EQ(shown(request).world_size, 6);
  EXPECT_EQ(shown(request_on("a,b")).world_size, 2);
}

TEST(HostPlace, ShowsListsOfDevicesAlsoFromAHostWithoutGpus) {
  const LaunchRequest request = request_on("a:4");
  std::vector<Host> hosts = hosts_of(request);
  hosts.front().devices = {0, 2};
  LaunchRequest placed = placed_on_hosts(request, hosts);
  placed.dry_run = DryRun::kText;
  const auto plan_on = [&](const AllocatedNode& here) {
    return make_plan(placed, Environment(), allocation_of_hosts(placed, hosts, here), {true, ""}, "demo");
  };
  EXPECT_EQ(plan_on(cpu_node()).world_size, 2);
  EXPECT_EQ(ids_of(plan_on(gpu_node(4)).nodes.front().devices), "gpu0,gpu2");
}

TEST(HostPlace, RefusesSparesAndSaysHowARunOutlivesAHost) {
  LaunchRequest request = request_on("a,b,c");
  request.spares = {1, Source::kFlag, "--spares"};
  EXPECT_THAT(refusal_of([&] { (void)placed_by(request); }),
              mentions({"'--spares 1'", "'-H a,b,c'", "'--num-nodes 2:3'"}));
  request.hosts = hosts_flag("a");
  EXPECT_THAT(refusal_of([&] { (void)placed_by(request); }), mentions({"'--spares 1'", "'-H a'", "'--spares'"}));
}

TEST(HostPlace, RefusesContradictionsWithTheLineToType) {
  LaunchRequest nodes = request_on("a:4,b:4,c:4");
  nodes.num_nodes = {2, Source::kFlag, "--num_nodes"};
  EXPECT_EQ(refusal_of([&] { (void)placed_by(nodes); }),
            "'--num_nodes 2': '-H a:4,b:4,c:4' names 3 hosts | leave '--num_nodes' out, or write '-H a:4,b:4'");
  nodes.num_nodes.value = 4;
  EXPECT_EQ(refusal_of([&] { (void)placed_by(nodes); }),
            "'--num_nodes 4': '-H a:4,b:4,c:4' names 3 hosts | leave '--num_nodes' out, or name as many hosts");
}

TEST(HostPlace, NamesWhatSelectsDevicesThatAHostDoesNotHave) {
  LaunchRequest request = request_on("a:2");
  Host host = hosts_of(request).front();
  host.devices = {1};
  const auto refusal = [&] {
    const LaunchRequest placed = placed_on_hosts(request, {host});
    return refusal_of([&] {
      (void)make_plan(placed, Environment(), allocation_of_hosts(placed, {host}, cpu_node()), {true, ""}, "demo");
    });
  };
  request.include = flag("--include", "a:1");
  EXPECT_TRUE(refusal().starts_with("'--include a:1' names GPUs, and 'a' has no GPU")) << refusal();
  EXPECT_TRUE(refusal().ends_with(" | use '-H a:2' for two CPU ranks")) << refusal();
  request.include = {};
  request.exclude = flag("--exclude", "a:0");
  EXPECT_TRUE(refusal().starts_with("'left by --exclude: a:1' names GPUs, and 'a' has no GPU")) << refusal();
  EXPECT_TRUE(refusal().ends_with(" | use '-H a:2' for two CPU ranks")) << refusal();
}

TEST(HostPlace, RefusesOptionsThatNeedOneHostOrAnotherRendezvous) {
  LaunchRequest endpoint = request_on("a,b");
  endpoint.rendezvous.endpoint = {{"a", 29'500}, Source::kFlag, "--rdzv-endpoint"};
  EXPECT_THAT(refusal_of([&] { (void)placed_by(endpoint); }), mentions({"'--rdzv-endpoint'", "'-H a,b'"}));
  LaunchRequest input = request_on("a,b");
  input.standard_input = true;
  EXPECT_NE(refusal_of([&] { (void)placed_by(input); }), "");
  LaunchRequest alone = request_on("a,b");
  alone.standalone = true;
  EXPECT_NE(refusal_of([&] { (void)placed_by(alone); }), "");
}

TEST(HostPlace, RefusesTwoNamesOfOneHostWhereItHasGpus) {
  const LaunchRequest request = request_on("a:2,b:1,alias:2");
  const auto refusal = [&](const LaunchRequest& asked, const AllocatedNode& here) {
    const LaunchRequest placed = placed_by(asked);
    Allocation allocation = allocation_of_hosts(placed, hosts_of(asked), here);
    allocation.names_of_host = {"a", "alias"};
    return refusal_of([&] { (void)make_plan(placed, Environment(), allocation, {true, ""}, "demo"); });
  };
  EXPECT_THAT(refusal(request, gpu_node(4)), mentions({"'a'", "'alias'", "'-H a:4'"}));
  EXPECT_EQ(refusal(request, cpu_node()), "") << "a job of several nodes, tried on one";
  LaunchRequest on_cpus = request;
  on_cpus.accelerator = accelerator_flag(DeviceKind::kCpu);
  EXPECT_EQ(refusal(on_cpus, gpu_node(4)), "");
  LaunchRequest shared = request;
  shared.share_gpus = true;
  EXPECT_EQ(refusal(shared, gpu_node(4)), "");
}

TEST(HostPlace, LeavesARangeOfNodes) {
  LaunchRequest elastic = request_on("a:1,b:1,c:1");
  elastic.num_nodes = {3, Source::kFlag, "--nnodes"};
  elastic.min_nodes = 2;
  EXPECT_EQ(placed_by(elastic).min_nodes, 2);
}

}  // namespace
}  // namespace lrun::launcher
