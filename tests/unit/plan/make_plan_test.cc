#include "plan/make_plan.h"

#include <gtest/gtest.h>

#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

TEST(MakePlan, OfEightDevicesOnFourNodesHas32Ranks) {
  const LaunchPlan plan = plan_of(request_for_nodes("8", 4), cpu_node());
  EXPECT_EQ(plan.world_size, 32);
  EXPECT_EQ(plan.num_nodes, 4);
  EXPECT_EQ(text_of(plan.strategy.value), "ddp");
  EXPECT_EQ(text_of(plan.process_group_backend.value), "shm+gloo");
  EXPECT_EQ(plan.master_addr, "") << "the rendezvous decides";
  ASSERT_EQ(plan.nodes.size(), 4U);
  for (const NodePlan& node : plan.nodes) {
    for (const WorkerPlan& worker : node.workers) EXPECT_EQ(worker.rank, 8 * node.node_rank + worker.local_rank);
  }
  EXPECT_EQ(plan.nodes[0].name, "host");
  EXPECT_EQ(plan.nodes[3].name, "");
}

TEST(MakePlan, OfOneHostAloneHasNoOtherNodes) {
  LaunchRequest request = request_for_nodes("1", 2);
  request.standalone = true;
  EXPECT_THAT(refusal_of([&] { plan_of(request, cpu_node()); }),
              mentions({"'--standalone' is a run on this host alone", " 2' asks for 2 nodes"}));
}

TEST(MakePlan, OfOneNodeIsOnLoopback) {
  const LaunchPlan plan = plan_of(request_for("3"), cpu_node());
  EXPECT_EQ(plan.world_size, 3);
  EXPECT_EQ(plan.master_addr, "127.0.0.1");
  EXPECT_EQ(plan.master_port, std::nullopt) << "the store's socket decides";
  EXPECT_EQ(text_of(plan.process_group_backend.value), "shm");
  EXPECT_EQ(text_of(plan.accelerator.value), "cpu");
}

TEST(MakePlan, OfNothingAskedIsOneWorker) {
  const LaunchPlan plan = plan_of(request_for(""), cpu_node());
  EXPECT_EQ(plan.world_size, 1);
  EXPECT_EQ(text_of(plan.strategy.value), "single");
}

TEST(MakePlan, OfDeepSpeedIsOneWorkerPerDeviceOnEveryNode) {
  LaunchRequest request = request_for_nodes("2", 3);
  request.strategy = strategy_flag("deepspeed");
  const LaunchPlan plan = plan_of(request, gpu_node(4));
  EXPECT_EQ(plan.world_size, 6);
  EXPECT_EQ(text_of(plan.strategy.value), "deepspeed");
  EXPECT_EQ(plan.nodes.front().workers.front().visible_devices, "0,1") << "all of the node's chosen ones";
}

TEST(MakePlan, IsTheSameForTheSameInput) {
  const LaunchRequest request = request_for_nodes("2,3", 2);
  EXPECT_EQ(plan_of(request, gpu_node(4)), plan_of(request, gpu_node(4)));
}

TEST(MakePlan, TakesAnAllocationsUnequalNodes) {
  const Allocation allocation{{cpu_node(3, "a"), cpu_node(1, "b"), cpu_node(2, "c")}, "a host file", ""};
  const LaunchPlan plan = make_plan(request_for_processes("cpu"), Environment(), allocation, {true, ""}, "demo");
  EXPECT_EQ(plan.world_size, 6);
  EXPECT_EQ(plan.nodes[1].base_rank, 3);
  EXPECT_EQ(plan.nodes[2].base_rank, 4);
  EXPECT_EQ(plan.nodes[2].name, "c");
}

TEST(MakePlan, KeepsAFixedPortAndTakesZeroForAnyPort) {
  LaunchRequest request = request_for("2");
  request.master_port = {29500, Source::kFlag, "--master-port"};
  EXPECT_EQ(plan_of(request, cpu_node()).master_port, 29500);
  request.master_port.value = 0;
  EXPECT_EQ(plan_of(request, cpu_node()).master_port, std::nullopt);
}

TEST(MakePlan, SaysThatTheProgramStartsItsRanksItself) {
  LaunchRequest request = request_for("2");
  EXPECT_TRUE(plan_of(request, cpu_node()).notes.empty());
  request.strategy = strategy_flag("ddp_spawn");
  const LaunchPlan plan = plan_of(request, cpu_node());
  EXPECT_EQ(plan.world_size, 1);
  EXPECT_EQ(plan.nodes[0].workers[0].devices.size(), 2U);
  EXPECT_THAT(plan.notes, testing::ElementsAre(mentions({"'ddp_spawn'", "2 ranks"})));
}

TEST(MakePlan, SaysThatRedirectsWithoutFilesHideNothing) {
  LaunchRequest request = request_for("2");
  request.log_dir = {"/dev/null", Source::kFlag, "--log-dir"};
  request.output.redirects = {{.all = 3}, Source::kFlag, "-r"};
  EXPECT_THAT(plan_of(request, cpu_node()).warnings,
              testing::ElementsAre(mentions({"'-r'", "'--log-dir'", "'--output quiet'"})));
  request.output.console = {ConsoleMode::kQuiet, Source::kFlag, "--output"};
  EXPECT_TRUE(plan_of(request, cpu_node()).warnings.empty());
  request.output.console = {};
  request.output.redirects.value.all = 0;
  EXPECT_TRUE(plan_of(request, cpu_node()).warnings.empty()) << "'-r 0' names nothing";
  request.output.redirects.value.all = 3;
  request.log_dir = {"/tmp", Source::kFlag, "--log-dir"};
  EXPECT_TRUE(plan_of(request, cpu_node()).warnings.empty());
}

TEST(MakePlan, LeavesOutAForkServerWithTheReason) {
  LaunchRequest request = request_for("2");
  request.setup.preload = flag("--preload", "torch");
  const auto expect_left_out = [&](const Facts& reason) {
    const LaunchPlan plan = plan_of(request, cpu_node());
    EXPECT_THAT(plan.warnings, testing::ElementsAre(HasFacts(reason)));
    EXPECT_EQ(plan.setup.preload, Setting<std::string>());
  };
  expect_left_out({"'--preload' is ignored", "'./train' is not started with Python"});
  request.command = {"python3"};
  expect_left_out({"'python3' has no program"});
  request.command = {"train.py"};
  EXPECT_EQ(plan_of(request, cpu_node()).setup.preload, request.setup.preload);
  request.setup.debug_rank = {0, Source::kFlag, "--debug-rank"};
  expect_left_out({"not with '--debug-rank'"});
  request.setup.wrappers = {{{"nice"}, {}, "--wrap"}};
  expect_left_out({"not with '--wrap'"});
}

TEST(MakePlan, LetsTorchrunsWorkersStartBeforeAFailureStopsThem) {
  LaunchRequest request = request_for_processes("2");
  EXPECT_EQ(plan_of(request, cpu_node()).settle_at_start, Duration(0));
  request.compat = Compat::kTorchrun;
  EXPECT_EQ(plan_of(request, cpu_node()).settle_at_start, Duration(100));
  request.monitor_interval = Duration(500);
  EXPECT_EQ(plan_of(request, cpu_node()).settle_at_start, Duration(500));
  request.settle = {Duration(0), Source::kFlag, "--settle"};
  EXPECT_EQ(plan_of(request, cpu_node()).settle_at_start, Duration(0)) << "who asks for a moment gets that one";
}

TEST(MakePlan, IsolatesNothingOnCpusThatWereAskedFor) {
  LaunchRequest request = request_for("2");
  request.accelerator = accelerator_flag(DeviceKind::kCpu);
  request.isolate_gpus = true;
  const LaunchPlan plan = plan_of(request, gpu_node(4));
  EXPECT_FALSE(plan.isolate_gpus);
  EXPECT_EQ(plan.nodes[0].workers[0].visible_devices, std::nullopt);
  EXPECT_EQ(plan.warnings.size(), 1U);
}

TEST(MakePlan, GivesNoProcessSeveralInstances) {
  AllocatedNode node = gpu_node(0);
  for (const char* uuid : {"MIG-ab", "MIG-cd"}) node.gpus.gpus.push_back({0, uuid, uuid, false, "GPU-0aaa"});
  LaunchRequest request = request_for("2");
  request.strategy = strategy_flag("dp");
  EXPECT_EQ(
      refusal_of([&] { plan_of(request, node); }),
      "strategy 'dp' gives one process several devices, and of MIG instances it can use only one | use '--strategy "
      "ddp'");
}

TEST(MakePlan, IsolatedWorkersCannotBeMoreThanGpus) {
  LaunchRequest request = request_for_processes("6");
  request.isolate_gpus = true;
  EXPECT_NE(refusal_of([&] { plan_of(request, gpu_node(4)); }).find("has 4 GPUs"), std::string::npos);
}

TEST(MakePlan, WarnsOfOptionsThatChangeNothingWithoutAnother) {
  LaunchRequest request = request_for("2");
  request.on_hang = {OnHang::kRestart, Source::kFlag, "--on-hang"};
  request.restart_backoff = {Duration(1000), Source::kFlag, "--restart-backoff"};
  EXPECT_THAT(plan_of(request, cpu_node()).warnings,
              testing::ElementsAre("'--on-hang' changes nothing without '--hang-timeout'",
                                   "'--restart-backoff' changes nothing without '--max-restarts'"));
  request.hang_timeout.value = Duration(1000);
  request.restart_backoff = {};
  request.checkpoint_path = {};
  EXPECT_THAT(plan_of(request, cpu_node()).warnings,
              testing::ElementsAre("'--on-hang restart' changes nothing without '--max-restarts'"));
  request.restart_backoff = {Duration(1000), Source::kFlag, "--restart-backoff"};
  request.max_restarts.value = 1;
  EXPECT_THAT(plan_of(request, cpu_node()).warnings, testing::IsEmpty());
}

TEST(MakePlan, RefusesImpossibleNumbers) {
  EXPECT_NE(refusal_of([] { plan_of(request_for_nodes("2", 0), cpu_node()); }), "");
  EXPECT_NE(refusal_of([] { plan_of(request_for_nodes("60000", 1'000'000), cpu_node()); }), "");
  EXPECT_NE(refusal_of([] { plan_of(request_for_nodes("1", 2'000'000'000), cpu_node()); }), "");
}

}  // namespace
}  // namespace lrun::launcher
