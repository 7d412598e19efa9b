#include "plan/cpu_binding.h"

#include <gtest/gtest.h>

#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

/// `sockets` sockets, each one NUMA node, of `cores` cores with two threads each; two cores share a cache.
CpuTopology machine(int sockets, int cores) {
  CpuTopology topology;
  const int all = sockets * cores;
  for (int core = 0; core < all; ++core) {
    topology.cores.push_back({{core, core + all}, core / cores, core / cores, core / 2 * 2});
  }
  return topology;
}

/// GPUs on the NUMA nodes `places` of a machine.
AllocatedNode gpus_on(const std::vector<int>& places, const CpuTopology& topology) {
  AllocatedNode node = gpu_node(static_cast<int>(places.size()));
  for (std::size_t i = 0; i < places.size(); ++i) node.gpus.gpus[i].numa_node = places[i];
  node.topology = topology;
  node.cpus = topology.cpus();
  return node;
}

AllocatedNode cpus_of(const CpuTopology& topology) {
  AllocatedNode node = cpu_node(topology.cpus());
  node.topology = topology;
  return node;
}

LaunchRequest bound(const std::string& devices, Binding binding) {
  LaunchRequest request = request_for(devices);
  request.bind = {binding, Source::kFlag, "--bind"};
  return request;
}

std::string shown(const LaunchRequest& request, const AllocatedNode& node, const Environment& environment = {}) {
  std::string text;
  for (const std::string& line : binding_lines(plan_of(request, node, environment).nodes.front())) text += line + "\n";
  return text;
}

TEST(BindWorkers, ToNumaNodesFollowsTheGpus) {
  EXPECT_EQ(shown(bound("4", Binding::kNuma), gpus_on({1, 1, 0, 0}, machine(2, 8))),
            "local ranks 0-1: CPUs 8-15,24-31 (NUMA node 1), 4 threads each\n"
            "local ranks 2-3: CPUs 0-7,16-23 (NUMA node 0), 4 threads each\n");
}

TEST(BindWorkers, ToCoresGivesEachItsOwnPartOfTheGpusNode) {
  EXPECT_EQ(shown(bound("3", Binding::kCore), gpus_on({0, 1, 0}, machine(2, 5))),
            "local rank 0: CPUs 0-2,10-12 (NUMA node 0), 3 threads\n"
            "local rank 1: CPUs 5-9,15-19 (NUMA node 1), 5 threads\n"
            "local rank 2: CPUs 3-4,13-14 (NUMA node 0), 2 threads\n");
}

TEST(BindWorkers, ToCachesGoesRoundTheGroupsOfTheNode) {
  EXPECT_EQ(shown(bound("3", Binding::kCache), gpus_on({0, 0, 0}, machine(1, 4))),
            "local rank 0: CPUs 0-1,4-5 (NUMA node 0), 1 thread\n"
            "local rank 1: CPUs 2-3,6-7 (NUMA node 0), 2 threads\n"
            "local rank 2: CPUs 0-1,4-5 (NUMA node 0), 1 thread\n");
}

TEST(BindWorkers, ToSocketsTakesAllTheirNumaNodes) {
  CpuTopology topology = machine(4, 2);
  for (Core& core : topology.cores) core.package = core.numa_node / 2;
  EXPECT_EQ(shown(bound("2", Binding::kSocket), gpus_on({1, 3}, topology)),
            "local rank 0: CPUs 0-3,8-11 (NUMA node 0-1), 4 threads\n"
            "local rank 1: CPUs 4-7,12-15 (NUMA node 2-3), 4 threads\n");
}

TEST(BindWorkers, SpreadsCpuRanksInBlocks) {
  EXPECT_EQ(shown(bound("4", Binding::kNuma), cpus_of(machine(2, 8))),
            "local ranks 0-1: CPUs 0-7,16-23 (NUMA node 0), 4 threads each\n"
            "local ranks 2-3: CPUs 8-15,24-31 (NUMA node 1), 4 threads each\n");
  EXPECT_EQ(shown(bound("3", Binding::kCore), cpus_of(machine(2, 2))),
            "local rank 0: CPUs 0,4 (NUMA node 0), 1 thread\n"
            "local rank 1: CPUs 1,5 (NUMA node 0), 1 thread\n"
            "local rank 2: CPUs 2-3,6-7 (NUMA node 1), 2 threads\n");
}

TEST(BindWorkers, SpreadsGpusWhosePlaceIsUnknown) {
  EXPECT_EQ(shown(bound("2", Binding::kNuma), gpus_on({-1, -1}, machine(2, 2))),
            "local rank 0: CPUs 0-1,4-5 (NUMA node 0), 2 threads\n"
            "local rank 1: CPUs 2-3,6-7 (NUMA node 1), 2 threads\n");
}

TEST(BindWorkers, SaysWhenAGpusNodeIsOutOfBounds) {
  const LaunchPlan plan = plan_of(bound("2", Binding::kNuma), gpus_on({0, 1}, machine(1, 2)));
  EXPECT_THAT(plan.warnings, testing::ElementsAre(mentions({"'1'", "'host'", "NUMA", "1"})));
  EXPECT_EQ(plan.nodes[0].workers[1].cpus, (std::vector<int>{0, 1, 2, 3}));
}

TEST(BindWorkers, RefusesMoreWorkersThanCores) {
  EXPECT_EQ(refusal_of([] { plan_of(bound("8", Binding::kCore), cpus_of(machine(1, 4))); }),
            "'--bind core' needs a core for each device, and NUMA node 0 has 4 for 8 | use '--bind numa', or fewer "
            "workers");
  EXPECT_NE(shown(bound("8", Binding::kNuma), cpus_of(machine(1, 4))), "") << "they can share";
}

TEST(BindWorkers, GivesAProcessTheCpusOfAllItsDevices) {
  LaunchRequest request = bound("2", Binding::kNuma);
  request.strategy = strategy_flag("dp");
  EXPECT_EQ(shown(request, gpus_on({0, 1}, machine(2, 4))), "local rank 0: CPUs 0-15 (NUMA node 0-1), 4 threads\n")
      << "each replica opens a team of its own";
}

TEST(BindWorkers, RespectsTheCpuQuota) {
  AllocatedNode node = gpus_on({0, 1}, machine(2, 8));
  node.cpus = 6;  // of 32
  const LaunchPlan plan = plan_of(bound("2", Binding::kNuma), node);
  EXPECT_EQ(plan.nodes[0].workers[0].omp_num_threads, 3);
  EXPECT_EQ(plan.nodes[0].workers[0].cpus.size(), 16U) << "where it may run is another matter";
}

TEST(BindWorkers, LeavesTheUsersThreadsAlone) {
  const Environment base = environment_with({{"OMP_NUM_THREADS", "6"}});
  const LaunchPlan plan = plan_of(bound("2", Binding::kNuma), cpus_of(machine(2, 8)), base);
  EXPECT_EQ(plan.nodes[0].workers[0].omp_num_threads, 0);
  const WorkerEnvironment environment(plan, plan.nodes[0], base, {});
  EXPECT_EQ(variables_of(environment, plan.nodes[0].workers[1])["OMP_NUM_THREADS"], "6");
}

TEST(BindWorkers, SetsTheThreadsOfEachWorkerOnce) {
  const LaunchPlan plan = plan_of(bound("3", Binding::kCore), cpus_of(machine(2, 2)));
  const WorkerEnvironment environment(plan, plan.nodes[0], Environment(), {});
  EXPECT_EQ(variables_of(environment, plan.nodes[0].workers[0])["OMP_NUM_THREADS"], "1");
  EXPECT_EQ(variables_of(environment, plan.nodes[0].workers[2])["OMP_NUM_THREADS"], "2");
  for (const std::string& entry : environment.shared()) EXPECT_FALSE(entry.starts_with("OMP_NUM_THREADS")) << entry;
}

TEST(BindWorkers, WarnsOfOtherBinders) {
  const Environment base = environment_with({{"GOMP_CPU_AFFINITY", "0-3"}});
  EXPECT_EQ(plan_of(bound("2", Binding::kNuma), cpus_of(machine(2, 2)), base).warnings.size(), 1U);
  EXPECT_EQ(plan_of(request_for("2"), cpus_of(machine(2, 2)), base).warnings.size(), 0U);
}

TEST(BindWorkers, DoesNothingUnlessAsked) {
  EXPECT_EQ(shown(request_for("2"), cpus_of(machine(2, 2))), "");
  EXPECT_FALSE(questions_of(request_for("2"), Environment()).topology);
  EXPECT_TRUE(questions_of(bound("2", Binding::kNuma), Environment()).topology);
}

}  // namespace
}  // namespace lrun::launcher
