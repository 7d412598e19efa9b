#include "plan/make_plan.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

LaunchRequest request_for_nodes(const std::string& devices, int nodes) {
  LaunchRequest request = request_for(devices);
  request.num_nodes = {nodes, Source::kFlag, "--num_nodes"};
  return request;
}

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
  EXPECT_EQ(plan.nodes[3].name, "node3");
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

/// '127.0.0.1:29400', with '?' where another port will do, for an endpoint and a backend.
std::string master_of(const RendezvousRequest& rendezvous, std::optional<int> master_port = {}) {
  LaunchRequest request = request_for("2");
  request.rendezvous = rendezvous;
  if (master_port) request.master_port = {master_port, Source::kFlag, "--master-port"};
  AllocatedNode node = cpu_node();
  node.also_named = {"localhost", "::1"};
  try {
    const LaunchPlan plan = plan_of(request, node);
    return plan.master_addr + ":" + std::to_string(plan.master_port.value_or(0)) + (plan.any_port_will_do ? "?" : "");
  } catch (const UserError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
}

TEST(MakePlan, TakesThePortOfAnEndpointOnThisHost) {
  EXPECT_EQ(master_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("localhost", 29400)}),
            "127.0.0.1:29400?");
  EXPECT_EQ(master_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("::1", {})}), "::1:29400?");
  EXPECT_EQ(master_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("localhost", 0)}), "127.0.0.1:0?");
  EXPECT_EQ(master_of({.endpoint = endpoint_of("localhost", 4000)}, 5000), "127.0.0.1:4000") << "as torchrun";
  EXPECT_EQ(master_of({.backend = backend_flag("c10d")}, 5000), "127.0.0.1:5000");
  EXPECT_EQ(master_of({.master_addr = flag("--master-addr", "localhost")}, 5000), "127.0.0.1:5000");
}

TEST(MakePlan, HasTheStoreAtTheLoopbackAddressThatTheEndpointNames) {
  EXPECT_EQ(master_of({.endpoint = endpoint_of("127.0.0.2", 4000)}), "127.0.0.2:4000");
  EXPECT_EQ(master_of({.endpoint = endpoint_of("::1", 4000)}), "::1:4000");
  EXPECT_EQ(master_of({.master_addr = flag("--master-addr", "127.0.0.2")}, 5000), "127.0.0.2:5000");
  EXPECT_EQ(master_of({.endpoint = endpoint_of("127.0.0.2", 4000), .local_addr = flag("--local-addr", "localhost")}),
            "localhost:4000")
      << "where workers are told to reach it";
  const RendezvousRequest anothers{
      .backend = backend_flag("c10d"), .endpoint = endpoint_of("127.0.0.2", 4000), .is_host = false};
  EXPECT_EQ(master_of(anothers), "127.0.0.1:0") << "the address is the others'";
}

LaunchRequest request_to_meet(const RendezvousRequest& rendezvous) {
  LaunchRequest request = request_for_nodes("8", 4);
  request.rendezvous = rendezvous;
  return request;
}

TEST(MakePlan, TakesIPv6sLoopbackForIPv4sWhereThereIsNoIPv6) {
  const auto host_of = [](std::vector<std::string> names, const std::string& host) {
    AllocatedNode node = cpu_node();
    node.also_named = std::move(names);
    return plan_of(request_to_meet({.endpoint = endpoint_of(host, 4000)}), node).rendezvous->host;
  };
  EXPECT_EQ(host_of({"::1"}, "::1"), "::1");
  EXPECT_EQ(host_of({"0:0:0:0:0:0:0:1"}, "0:0:0:0:0:0:0:1"), "::1");
  EXPECT_EQ(host_of({}, "::1"), "127.0.0.1");
  EXPECT_EQ(host_of({}, "127.0.0.2"), "127.0.0.2");
}

std::vector<std::string> warnings_of(const RendezvousRequest& rendezvous, int master_port) {
  LaunchRequest request = request_for("2");
  request.rendezvous = rendezvous;
  request.master_port = {master_port, Source::kFlag, "--master-port"};
  AllocatedNode node = cpu_node();
  node.also_named = {"localhost"};
  return plan_of(request, node).warnings;
}

TEST(MakePlan, SaysThatAnEndpointsPortWinsOverAnother) {
  const Setting<Endpoint> endpoint = endpoint_of("localhost", 4000);
  EXPECT_EQ(warnings_of({.endpoint = endpoint}, 5000),
            std::vector<std::string>{"'--master-port 5000' is not used: the port of '--rdzv-endpoint localhost:4000' "
                                     "is 4000"});
  EXPECT_EQ(warnings_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("localhost", {})}, 5000),
            std::vector<std::string>{"'--master-port 5000' is not used: the port of '--rdzv-endpoint localhost' is "
                                     "29400"});
  EXPECT_TRUE(warnings_of({.endpoint = endpoint}, 4000).empty()) << "they agree";
  EXPECT_TRUE(warnings_of({.endpoint = endpoint}, 0).empty()) << "any port would do";
}

TEST(MakePlan, LeavesAnEndpointThatItIsNotToHoldToOthers) {
  const RendezvousRequest anothers{
      .backend = backend_flag("c10d"), .endpoint = endpoint_of("localhost", 4000), .is_host = false};
  EXPECT_EQ(master_of(anothers), "127.0.0.1:0") << "the store is at a port of its own";
  EXPECT_EQ(warnings_of(anothers, 0),
            std::vector<std::string>{"'--rdzv-conf is_host=false': this run has one node, needs nobody, and leaves the "
                                     "endpoint to others; '--num_nodes' makes it a part of their job"});
  const RendezvousRequest fixed{.endpoint = endpoint_of("localhost", 4000), .is_host = false};
  EXPECT_EQ(master_of(fixed), "127.0.0.1:4000") << "with the static backend it is where the workers' store is";
  EXPECT_TRUE(warnings_of(fixed, 0).empty());
}

TEST(MakePlan, SaysThatTheProgramStartsItsRanksItself) {
  LaunchRequest request = request_for("2");
  EXPECT_TRUE(plan_of(request, cpu_node()).notes.empty());
  request.strategy = strategy_flag("ddp_spawn");
  const LaunchPlan plan = plan_of(request, cpu_node());
  EXPECT_EQ(plan.world_size, 1);
  EXPECT_EQ(plan.nodes[0].workers[0].devices.size(), 2U);
  EXPECT_EQ(plan.notes, std::vector<std::string>{
                            "strategy 'ddp_spawn' starts one process a node; by lrun::launch() it has to start "
                            "the 2 ranks of its node itself"});
}

TEST(MakePlan, SaysThatRedirectsWithoutFilesHideNothing) {
  LaunchRequest request = request_for("2");
  request.log_dir = {"/dev/null", Source::kFlag, "--log-dir"};
  request.output.redirects = {{.all = 3}, Source::kFlag, "-r"};
  EXPECT_EQ(plan_of(request, cpu_node()).warnings,
            std::vector<std::string>{"'-r' hides nothing: '--log-dir' switches off the files it writes to; '--output "
                                     "quiet' shows no output"});
  request.output.console = {ConsoleMode::kQuiet, Source::kFlag, "--output"};
  EXPECT_TRUE(plan_of(request, cpu_node()).warnings.empty());
  request.output.console = {};
  request.output.redirects.value.all = 0;
  EXPECT_TRUE(plan_of(request, cpu_node()).warnings.empty()) << "'-r 0' names nothing";
  request.output.redirects.value.all = 3;
  request.log_dir = {"/tmp", Source::kFlag, "--log-dir"};
  EXPECT_TRUE(plan_of(request, cpu_node()).warnings.empty());
}

TEST(MakePlan, RefusesAnotherMachine) {
  EXPECT_EQ(master_of({.endpoint = endpoint_of("node0", 29400)}),
            "'--rdzv-endpoint node0:29400': 'node0' is not this machine, and this run has one node | leave it "
            "out, or write '--rdzv-endpoint localhost:29400'");
  EXPECT_EQ(master_of({.master_addr = flag("--master-addr", "10.0.0.9")}),
            "'--master-addr 10.0.0.9': '10.0.0.9' is not this machine, and this run has one node | leave it "
            "out, or write '--master-addr 127.0.0.1'");
  EXPECT_EQ(
      master_of({.endpoint = endpoint_of("localhost", {})}),
      "'--rdzv-endpoint localhost' has no port | write '--rdzv-endpoint localhost:29500', or '--master-port 29500' "
      "instead");
}

TEST(MakePlan, GivesEveryWorkerAFairShareOfTheCpus) {
  const auto threads = [](const LaunchRequest& request, int cpus, const Environment& environment = Environment()) {
    return plan_of(request, cpu_node(cpus), environment).omp_num_threads;
  };
  EXPECT_EQ(threads(request_for("4"), 16), 4);
  EXPECT_EQ(threads(request_for("3"), 16), 5);
  EXPECT_EQ(threads(request_for("8"), 2), 1);
  EXPECT_EQ(threads(request_for(""), 16), 16);
  EXPECT_EQ(threads(request_for("4"), 16, environment_with({{"OMP_NUM_THREADS", "2"}})), 0) << "the user's own is kept";
  LaunchRequest dp = request_for("4");
  dp.strategy = strategy_flag("dp");
  EXPECT_EQ(threads(dp, 16), 4) << "each of the four replicas has a team of threads";
}

TEST(MakePlan, GivesTorchrunsWorkersOneThreadAndSaysSo) {
  LaunchRequest request = request_for_processes("2");
  request.compat = Compat::kTorchrun;
  const LaunchPlan several = plan_of(request, cpu_node());
  EXPECT_EQ(several.omp_num_threads, 1);
  ASSERT_EQ(several.warnings.size(), 1U);
  EXPECT_NE(several.warnings.front().find("OMP_NUM_THREADS"), std::string::npos);
  request.nproc_per_node = workers_flag("1");
  EXPECT_EQ(plan_of(request, cpu_node()).omp_num_threads, 0);
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

TEST(MakePlan, RefusesImpossibleNumbers) {
  EXPECT_NE(refusal_of([] { plan_of(request_for_nodes("2", 0), cpu_node()); }), "");
  EXPECT_NE(refusal_of([] { plan_of(request_for_nodes("60000", 1'000'000), cpu_node()); }), "");
  EXPECT_NE(refusal_of([] { plan_of(request_for_nodes("1", 2'000'000'000), cpu_node()); }), "");
}

TEST(QuestionsOf, AskForGpusOnlyWhenTheRequestDependsOnThem) {
  const Environment none;
  const Environment hidden = environment_with({{"CUDA_VISIBLE_DEVICES", ""}});
  EXPECT_TRUE(questions_of(request_for("auto"), none).gpus);
  EXPECT_TRUE(questions_of(request_for("2"), none).gpus);
  EXPECT_TRUE(questions_of(request_for_processes("gpu"), none).gpus);
  EXPECT_FALSE(questions_of(request_for("2"), hidden).gpus);
  EXPECT_TRUE(questions_of(request_for("0,1"), hidden).gpus) << "the refusal says that they are hidden";
  EXPECT_FALSE(questions_of(request_for_processes("cpu"), none).gpus);
  LaunchRequest on_cpu = request_for("auto");
  on_cpu.accelerator = accelerator_flag(DeviceKind::kCpu);
  EXPECT_FALSE(questions_of(on_cpu, none).gpus);
}

TEST(QuestionsOf, AskForCpusOnlyWhenTheRequestDependsOnThem) {
  const Environment none;
  const Environment threads = environment_with({{"OMP_NUM_THREADS", "1"}});
  EXPECT_TRUE(questions_of(request_for("2"), none).cpus) << "the threads of each";
  EXPECT_FALSE(questions_of(request_for("2"), threads).cpus);
  EXPECT_TRUE(questions_of(request_for("auto"), threads).cpus);
  EXPECT_TRUE(questions_of(request_for_processes("cpu"), threads).cpus);
  EXPECT_TRUE(questions_of(request_for_processes("auto"), threads).cpus);
}

RendezvousPlan meeting_of(const RendezvousRequest& rendezvous) {
  AllocatedNode node = cpu_node();
  node.also_named = {"here"};
  return *plan_of(request_to_meet(rendezvous), node).rendezvous;
}

TEST(MakePlan, MeetsWhereTheEndpointSays) {
  const RendezvousPlan there = meeting_of({.endpoint = endpoint_of("there", 4000)});
  EXPECT_EQ(there.host, "there");
  EXPECT_EQ(there.port, 4000);
  EXPECT_EQ(there.hosting, RendezvousPlan::Hosting::kNever);
  EXPECT_TRUE(there.workers_use_endpoint);
  EXPECT_EQ(there.min_nodes, 4);
  EXPECT_EQ(there.max_nodes, 4);
  const RendezvousPlan here = meeting_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("here", {})});
  EXPECT_EQ(here.port, 29400);
  EXPECT_EQ(here.hosting, RendezvousPlan::Hosting::kIfFree);
  EXPECT_FALSE(here.workers_use_endpoint);
  EXPECT_EQ(meeting_of({.master_addr = flag("--master-addr", "there")}).port, 29500);
  EXPECT_FALSE(plan_of(request_for("8"), cpu_node()).rendezvous) << "alone";
}

TEST(MakePlan, LetsTheNodeWithRankZeroHoldTheStaticMeeting) {
  using Hosting = RendezvousPlan::Hosting;
  const auto hosting = [](int rank) {
    return meeting_of({.endpoint = endpoint_of("here", 4000), .node_rank = {rank, Source::kFlag, "--node-rank"}})
        .hosting;
  };
  EXPECT_EQ(hosting(0), Hosting::kMust);
  EXPECT_EQ(hosting(1), Hosting::kNever);
  EXPECT_EQ(meeting_of({.endpoint = endpoint_of("there", 4000), .is_host = true}).hosting, Hosting::kMust);
  EXPECT_EQ(meeting_of({.endpoint = endpoint_of("here", 4000), .is_host = false}).hosting, Hosting::kNever);
  EXPECT_TRUE(meeting_of({.endpoint = endpoint_of("here", 4000), .is_host = false}).leaves_endpoint);
}

TEST(MakePlan, TriesToReachTheMeetingAsLongAsItWaitsForOthers) {
  const RendezvousPlan given = meeting_of({.endpoint = endpoint_of("there", 1), .join_timeout = Duration(7000)});
  EXPECT_EQ(given.connect_timeout, Duration(7000));
  const RendezvousPlan shorter = meeting_of(
      {.endpoint = endpoint_of("there", 1), .join_timeout = Duration(7000), .connect_timeout = Duration(1000)});
  EXPECT_EQ(shorter.connect_timeout, Duration(1000));
}

TEST(MakePlan, SaysWhatToTypeForSeveralNodes) {
  const auto refusal = [](const RendezvousRequest& rendezvous) {
    return refusal_of([&] { check_meeting_place(plan_of(request_to_meet(rendezvous), cpu_node())); });
  };
  EXPECT_EQ(refusal({}),
            "the launchers of 4 nodes do not know where to meet | on every node, write '--rdzv-endpoint HOST:29500' "
            "with the name of one of them");
  EXPECT_EQ(
      refusal({.endpoint = endpoint_of("there", {})}),
      "'--rdzv-endpoint there' has no port | write '--rdzv-endpoint there:29500', or '--master-port 29500' instead");
  EXPECT_EQ(refusal({.endpoint = endpoint_of("there", 1), .node_rank = {4, Source::kFlag, "--node-rank"}}),
            "'--node-rank 4': there is no such node | this run has the node ranks 0 to 3");
  EXPECT_EQ(refusal({.endpoint = endpoint_of("there", 0)}),
            "'--rdzv-endpoint there:0': with several nodes the port has to be one that all of them know | write "
            "'--rdzv-endpoint there:29400' on every node");
  LaunchRequest any_port = request_to_meet({.master_addr = flag("--master-addr", "there")});
  any_port.master_port = {0, Source::kFlag, "--master-port"};
  EXPECT_EQ(refusal_of([&] { plan_of(any_port, cpu_node()); }),
            "'--master-port 0': with several nodes the port has to be one that all of them know | write "
            "'--master-port 29500' on every node");
}

TEST(MakePlan, TakesTorchrunsAnyPortForAJobThatMayBeginAlone) {
  LaunchRequest request = request_to_meet({.backend = backend_flag("c10d"), .endpoint = endpoint_of("there", 0)});
  request.compat = Compat::kTorchrun;
  request.min_nodes = 1;
  EXPECT_EQ(plan_of(request, cpu_node()).rendezvous->port, 0);
  request.min_nodes = 2;
  EXPECT_THROW((void)plan_of(request, cpu_node()), UserError);
}

TEST(MakePlan, SaysThatAnEndpointsPortWinsAlsoWithSeveralNodes) {
  LaunchRequest request = request_to_meet({.endpoint = endpoint_of("there", 4000)});
  request.master_port = {5000, Source::kFlag, "--master-port"};
  const LaunchPlan plan = plan_of(request, cpu_node());
  EXPECT_EQ(plan.rendezvous->port, 4000);
  EXPECT_EQ(plan.warnings, std::vector<std::string>{"'--master-port 5000' is not used: the port of '--rdzv-endpoint "
                                                    "there:4000' is 4000"});
}

}  // namespace
}  // namespace lrun::launcher
