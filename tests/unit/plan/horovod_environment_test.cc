#include "plan/horovod_environment.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

using Variables = std::map<std::string, std::string>;

LaunchRequest horovod_request(const std::string& processes) {
  LaunchRequest request = request_for_processes(processes);
  request.strategy = strategy_flag("horovod");
  return request;
}

/// As a launcher of a job gives it: its own node, and what the others have.
Variables worker_of(const LaunchPlan& plan, std::size_t node, int local_rank, const RunFacts& facts,
                    const Environment& base = Environment()) {
  const NodePlan& place = plan.nodes.at(node);
  return variables_of(WorkerEnvironment(plan, place, base, facts),
                      place.workers.at(static_cast<std::size_t>(local_rank)));
}

LaunchPlan two_and_one() {
  LaunchRequest request = horovod_request("");
  request.num_nodes = {2, Source::kFlag, "--num_nodes"};
  AllocatedNode first = cpu_node(16, "a");
  AllocatedNode second = cpu_node(16, "b");
  first.devices = devices_flag("2").value;
  second.devices = devices_flag("1").value;
  return make_plan(request, Environment(), {{first, second}, "-H", "the user names the hosts"}, {true, ""}, "demo");
}

TEST(HorovodEnvironment, SaysWhereEveryWorkerIs) {
  const LaunchPlan plan = two_and_one();
  const RunFacts facts{.master_port = 29500, .master_addr = "10.0.0.1", .network_interface = "eth1"};
  struct Case {
    std::size_t node;
    int local_rank;
    Variables expected;
  };
  const std::vector<Case> cases = {
      {0, 0, {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"LOCAL_SIZE", "2"}, {"CROSS_RANK", "0"}, {"CROSS_SIZE", "2"}}},
      {0, 1, {{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"LOCAL_SIZE", "2"}, {"CROSS_RANK", "0"}, {"CROSS_SIZE", "1"}}},
      {1, 0, {{"RANK", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_SIZE", "1"}, {"CROSS_RANK", "1"}, {"CROSS_SIZE", "2"}}},
  };
  for (const auto& [node, local_rank, expected] : cases) {
    Variables seen = worker_of(plan, node, local_rank, facts);
    for (const auto& [name, value] : expected) EXPECT_EQ(seen["HOROVOD_" + name], value) << name << " on node " << node;
    EXPECT_EQ(seen["HOROVOD_SIZE"], "3");
    EXPECT_EQ(seen["HOROVOD_HOSTNAME"], node == 0 ? "a" : "b");
    EXPECT_EQ(seen["HOROVOD_CONTROLLER"], "gloo");
    EXPECT_EQ(seen["HOROVOD_CPU_OPERATIONS"], "gloo");
    EXPECT_EQ(seen["HOROVOD_GLOO_RENDEZVOUS_ADDR"], "10.0.0.1");
    EXPECT_EQ(seen["HOROVOD_GLOO_RENDEZVOUS_PORT"], "29500");
    EXPECT_EQ(seen["HOROVOD_GLOO_IFACE"], "eth1");
    EXPECT_EQ(seen["PYTHONUNBUFFERED"], "1");
    EXPECT_EQ(seen["LRUN_STRATEGY"], "horovod");
    EXPECT_EQ(seen["MASTER_PORT"], "29500") << "torch's variables are there as well";
  }
}

TEST(HorovodEnvironment, TakesTheOtherNodesFromTheRendezvous) {
  LaunchPlan plan = two_and_one();
  plan.nodes.erase(plan.nodes.begin());  // a launcher knows its own node alone
  const RunFacts facts{
      .master_port = 1, .nodes_by_workers = {{1, 1}, {4, 1}}, .earlier_by_workers = {{4, 1}}, .node_name = "b-1"};
  Variables seen = worker_of(plan, 0, 0, facts);
  EXPECT_EQ(seen["HOROVOD_CROSS_RANK"], "1");
  EXPECT_EQ(seen["HOROVOD_CROSS_SIZE"], "2");
  EXPECT_EQ(seen["HOROVOD_HOSTNAME"], "b-1");
}

TEST(HorovodEnvironment, IsTheTable) {
  const LaunchPlan plan = plan_of(horovod_request("2"), cpu_node());
  const Environment base = environment_with({{"HOROVOD_RANK", "7"}, {"HOROVOD_TIMELINE", "t.json"}, {"PATH", "/bin"}});
  Variables seen = worker_of(plan, 0, 1, {.master_port = 1, .network_interface = "lo"}, base);
  for (const ContractVariable& variable : kHorovodContract) {
    EXPECT_EQ(seen.count(std::string(variable.name)), 1U) << variable.name;
  }
  EXPECT_EQ(seen["HOROVOD_RANK"], "1") << "not that of a horovodrun around us";
  EXPECT_EQ(seen["HOROVOD_TIMELINE"], "t.json") << "what tunes Horovod is the user's";
  const WorkerEnvironment environment(plan, plan.nodes[0], base, {.network_interface = "lo"});
  std::set<std::string> names;
  for (const std::string& entry : environment.shared()) {
    EXPECT_TRUE(names.insert(entry.substr(0, entry.find('='))).second) << entry;
  }
  for (const auto& [name, value] : environment.of(plan.nodes[0].workers[0])) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(find_contract_variable(name)->scope, ContractVariable::Scope::kRank) << name;
  }
  EXPECT_TRUE(environment.removed().empty());
}

TEST(HorovodEnvironment, KeepsTheUsersNetworkInterface) {
  const LaunchPlan plan = plan_of(horovod_request("2"), cpu_node());
  const Environment base = environment_with({{"HOROVOD_GLOO_IFACE", "ib0"}, {"PYTHONUNBUFFERED", "0"}});
  Variables seen = worker_of(plan, 0, 0, {.network_interface = "eth0"}, base);
  EXPECT_EQ(seen["HOROVOD_GLOO_IFACE"], "ib0");
  EXPECT_EQ(seen["PYTHONUNBUFFERED"], "0");
  EXPECT_EQ(worker_of(plan, 0, 0, {}).count("HOROVOD_GLOO_IFACE"), 0U) << "Horovod has a default of its own";
}

TEST(HorovodEnvironment, IsNotThereUnderOtherStrategies) {
  const LaunchPlan plan = plan_of(request_for_processes("2"), cpu_node());
  const Environment base = environment_with({{"HOROVOD_RANK", "7"}, {"HOROVOD_CONTROLLER", "mpi"}});
  Variables seen = worker_of(plan, 0, 0, {}, base);
  EXPECT_EQ(seen.count("HOROVOD_RANK"), 0U);
  EXPECT_EQ(seen.count("HOROVOD_GLOO_RENDEZVOUS_ADDR"), 0U);
  EXPECT_EQ(seen["HOROVOD_CONTROLLER"], "mpi") << "nothing of lrun's";
  EXPECT_EQ(seen.count("PYTHONUNBUFFERED"), 0U);
}

TEST(HorovodPlan, SaysWhatTheWorldMeansForTheLearningRate) {
  const LaunchPlan plan = plan_of(horovod_request("8"), cpu_node());
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_THAT(plan.notes[0], mentions({"8 workers", "by 8"}));
  EXPECT_TRUE(plan_of(horovod_request("1"), cpu_node()).notes.empty());
}

TEST(HorovodPlan, IsTheDefaultOfHorovodrun) {
  LaunchRequest request = request_for_processes("2");
  request.compat = Compat::kHorovodrun;
  EXPECT_EQ(text_of(plan_of(request, cpu_node()).strategy.value), "horovod");
  request.strategy = strategy_flag("ddp");
  EXPECT_EQ(text_of(plan_of(request, cpu_node()).strategy.value), "ddp");
}

TEST(HorovodPlan, RefusesWhatCannotWork) {
  const auto refusal = [](const LaunchRequest& request, const Environment& environment) {
    return refusal_of([&] { (void)plan_of(request, cpu_node(), environment); });
  };
  EXPECT_THAT(refusal(horovod_request("2"), environment_with({{"HOROVOD_CONTROLLER", "mpi"}})),
              mentions({"'HOROVOD_CONTROLLER=mpi'", "'mpirun -np N PROGRAM'"}));
  EXPECT_EQ(refusal(horovod_request("2"), environment_with({{"HOROVOD_CPU_OPERATIONS", "Gloo"}})), "");
  LaunchRequest address = horovod_request("2");
  address.num_nodes = {2, Source::kFlag, "--num_nodes"};
  address.rendezvous.endpoint = {{"fd00::1", 29500}, Source::kFlag, "--rdzv-endpoint"};
  EXPECT_EQ(refusal(address, Environment()),
            "'fd00::1': Horovod reaches its rendezvous over IPv4 only | use an IPv4 "
            "address, or a name that has one");
  LaunchRequest own = horovod_request("2");
  own.setup.environment = {{EnvironmentChange::Kind::kSet, "HOROVOD_SIZE", "3", Source::kFlag, "--env"}};
  EXPECT_EQ(refusal(own, Environment()),
            "'--env HOROVOD_SIZE=3': lrun itself gives 'HOROVOD_SIZE' to workers | lrun(1) "
            "lists those variables under 'Variables that a worker gets'");
  own.setup.environment.front().name = "HOROVOD_TIMELINE";
  EXPECT_EQ(refusal(own, Environment()), "");
  LaunchRequest store = horovod_request("2");
  store.standalone = true;
  EXPECT_THAT(refusal(store, environment_with({{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}})),
              mentions({"'TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1'", "'horovod'", "0"}));
}

}  // namespace
}  // namespace lrun::launcher
