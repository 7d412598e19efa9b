#include "plan/worker_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "plan/show_plan.h"
#include "planning.h"

namespace lrun::launcher {
namespace {

using Variables = std::map<std::string, std::string>;

Variables worker(const LaunchPlan& plan, int rank, const Environment& base = Environment(),
                 const RunFacts& facts = {29500, "", 0, ""}) {
  for (const NodePlan& node : plan.nodes) {
    for (const WorkerPlan& candidate : node.workers) {
      if (candidate.rank == rank) return variables_of(WorkerEnvironment(plan, node, base, facts), candidate);
    }
  }
  return {};
}

LaunchRequest two_nodes_of_two() {
  LaunchRequest request = request_for_processes("2");
  request.num_nodes = {2, Source::kFlag, "--nnodes"};
  return request;
}

TEST(WorkerEnvironment, IsTheWorkedExampleOfTheContract) {
  LaunchPlan plan = plan_of(two_nodes_of_two(), cpu_node());
  plan.max_restarts.value = 3;
  for (int rank = 0; rank < 4; ++rank) {
    Variables seen = worker(plan, rank);
    EXPECT_EQ(seen["RANK"], std::to_string(rank));
    EXPECT_EQ(seen["ROLE_RANK"], std::to_string(rank));
    EXPECT_EQ(seen["LOCAL_RANK"], std::to_string(rank % 2));
    EXPECT_EQ(seen["GROUP_RANK"], std::to_string(rank / 2));
    EXPECT_EQ(seen["NODE_RANK"], std::to_string(rank / 2));
    EXPECT_EQ(seen["WORLD_SIZE"], "4");
    EXPECT_EQ(seen["ROLE_WORLD_SIZE"], "4");
    EXPECT_EQ(seen["LOCAL_WORLD_SIZE"], "2");
    EXPECT_EQ(seen["GROUP_WORLD_SIZE"], "2");
    EXPECT_EQ(seen["ROLE_NAME"], "default");
    EXPECT_EQ(seen["TORCHELASTIC_RESTART_COUNT"], "0");
    EXPECT_EQ(seen["TORCHELASTIC_MAX_RESTARTS"], "3");
    EXPECT_EQ(seen["TORCHELASTIC_RUN_ID"], "demo");
    EXPECT_EQ(seen["TORCHELASTIC_USE_AGENT_STORE"], "True");
    EXPECT_EQ(seen["LRUN_NUM_NODES"], "2");
  }
}

TEST(ReplacedVariables, AreThoseOfTheContractThatWorkersFindOtherwise) {
  const Environment base = environment_with({{"RANK", "0"},
                                             {"WORLD_SIZE", "2"},
                                             {"MASTER_ADDR", "10.1.1.1"},
                                             {"MASTER_PORT", "29500"},
                                             {"OMP_NUM_THREADS", "3"},
                                             {"LRUN_STRATEGY", "dp"},
                                             {"SLURM_PROCID", "7"},
                                             {"HOME", "/root"}});
  LaunchRequest request = request_for("2");
  request.master_port = {29500, Source::kFlag, "--master-port"};
  EXPECT_EQ(replaced_variables(plan_of(request, cpu_node(), base), base),
            (std::vector<std::string>{"MASTER_ADDR=10.1.1.1", "RANK=0"}))
      << "rank 1 finds another; all of the others are as they are";
  EXPECT_EQ(replaced_variables(plan_of(request_for("1"), cpu_node()), environment_with({{"RANK", "0"}})),
            std::vector<std::string>());
}

TEST(ReplacedVariables, AreInThePlan) {
  const Environment base = environment_with({{"RANK", "3"}, {"ROLE_NAME", "a b"}});
  const std::string text = show_plan(plan_of(request_for("2"), cpu_node(), base), base, DryRun::kText);
  EXPECT_NE(text.find("\nreplaced:\n  RANK=3 'ROLE_NAME=a b'\n"), std::string::npos) << text;
}

TEST(WorkerEnvironment, SaysWhetherRank0HostsTheStore) {
  const auto says = [](const std::string& value, const std::string& backend, bool standalone) {
    LaunchRequest request = request_for("2");
    request.standalone = standalone;
    request.rendezvous.backend = backend_flag(backend);
    const Environment base = environment_with({{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", value}});
    const LaunchPlan plan = plan_of(request, cpu_node(), base);
    return worker(plan, 0, base)["TORCHELASTIC_USE_AGENT_STORE"];
  };
  EXPECT_EQ(says("1", "c10d", false), "False");
  EXPECT_EQ(says("1", "static", true), "False");
  EXPECT_EQ(says("0", "c10d", false), "True");
  EXPECT_EQ(says("1", "static", false), "True") << "as torchrun";
}

TEST(WorkerEnvironment, CarriesTheFactsOfTheStart) {
  const LaunchPlan plan = plan_of(request_for("2"), cpu_node());
  Variables seen = worker(plan, 1, Environment(), {41234, "", 2, "/logs/demo/attempt_2"});
  EXPECT_EQ(seen["MASTER_ADDR"], "127.0.0.1");
  EXPECT_EQ(seen["MASTER_PORT"], "41234");
  EXPECT_EQ(seen["TORCHELASTIC_RESTART_COUNT"], "2");
  EXPECT_EQ(seen["TORCHELASTIC_ERROR_FILE"], "/logs/demo/attempt_2/1/error.json");
  EXPECT_EQ(worker(plan, 0)["TORCHELASTIC_ERROR_FILE"], "") << "without log files it is there and empty";
  EXPECT_EQ(worker(plan, 0, Environment(), {1, "10.0.0.7", 0, ""})["MASTER_ADDR"], "10.0.0.7")
      << "the rendezvous knows better";
}

TEST(WorkerEnvironment, GivesNothingButTheTableAndWhatWasInherited) {
  LaunchRequest request = request_for("2,3");
  request.seed = {7, Source::kFlag, "--seed"};
  request.setup.debug_rank = {1, Source::kFlag, "--debug-rank"};
  const Environment base = environment_with({{"HIP_VISIBLE_DEVICES", "0"}, {"ZE_AFFINITY_MASK", "0"}});
  std::set<std::string> names;
  RunFacts facts;
  facts.memory_folder = "/dev/shm/folder";
  for (const auto& [name, value] : worker(plan_of(request, gpu_node(4), base), 0, base, facts)) names.insert(name);
  std::set<std::string> table;
  for (const ContractVariable& variable : kContract) {
    if (!variable.strategy) table.insert(std::string(variable.name));
  }
  table.erase("LRUN_PROGRESS_FD");  // of the attempt that has the memory
  EXPECT_EQ(names, table);
}

TEST(WorkerEnvironment, HasTheScopesOfTheTable) {
  const LaunchPlan plan = plan_of(two_nodes_of_two(), cpu_node());
  const WorkerEnvironment environment(plan, plan.nodes[1], Environment(), {});
  for (const auto& [name, value] : environment.of(plan.nodes[1].workers[0])) {
    const auto found = std::find_if(std::begin(kContract), std::end(kContract),
                                    [&, &n = name](const ContractVariable& variable) { return variable.name == n; });
    ASSERT_NE(found, std::end(kContract)) << name;
    EXPECT_EQ(found->scope, ContractVariable::Scope::kRank) << name;
  }
}

TEST(WorkerEnvironment, InheritsOnceAndNeverTwice) {
  const Environment base =
      environment_with({{"PATH", "/bin"}, {"RANK", "77"}, {"WORLD_SIZE", "99"}, {"PET_NNODES", "1"}, {"EMPTY", ""}});
  const LaunchPlan plan = plan_of(request_for("2"), cpu_node());
  const WorkerEnvironment environment(plan, plan.nodes[0], base, {});
  std::set<std::string> names;
  for (const std::string& entry : environment.shared()) {
    EXPECT_TRUE(names.insert(entry.substr(0, entry.find('='))).second) << entry;
  }
  for (const auto& [name, value] : environment.of(plan.nodes[0].workers[0])) {
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  Variables seen = worker(plan, 0, base);
  EXPECT_EQ(seen["PATH"], "/bin");
  EXPECT_EQ(seen["PET_NNODES"], "1");
  EXPECT_EQ(seen.count("EMPTY"), 1U);
  EXPECT_EQ(seen["RANK"], "0");
  EXPECT_EQ(seen["WORLD_SIZE"], "2");
}

TEST(WorkerEnvironment, TakesForeignRanksOutAndKeepsTheJob) {
  const Environment base = environment_with({{"SLURM_PROCID", "3"},
                                             {"SLURM_JOB_ID", "99"},
                                             {"OMPI_COMM_WORLD_RANK", "3"},
                                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"},
                                             {"PMI_RANK", "3"},
                                             {"PMIX_RANK", "3"}});
  const LaunchPlan plan = plan_of(request_for("2"), cpu_node());
  const WorkerEnvironment environment(plan, plan.nodes[0], base, {});
  EXPECT_EQ(environment.removed(), (std::vector<std::string>{"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK",
                                                             "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}));
  const Variables seen = worker(plan, 0, base);
  EXPECT_EQ(seen.count("SLURM_PROCID"), 0U);
  EXPECT_EQ(seen.at("SLURM_JOB_ID"), "99");
}

TEST(WorkerEnvironment, HasTheNamesOfDeepSpeedUnderItsStrategyAlone) {
  const Environment base = environment_with({{"CROSS_RANK", "7"}, {"LOCAL_SIZE", "7"}});
  LaunchRequest request = two_nodes_of_two();
  EXPECT_EQ(worker(plan_of(request, cpu_node(), base), 3, base).count("LOCAL_SIZE"), 0U);
  request.strategy = strategy_flag("deepspeed");
  const LaunchPlan plan = plan_of(request, cpu_node(), base);
  Variables seen = worker(plan, 3, base);
  EXPECT_EQ(seen["CROSS_RANK"], "1");
  EXPECT_EQ(seen["CROSS_SIZE"], "2");
  EXPECT_EQ(seen["LOCAL_SIZE"], "2");
  EXPECT_EQ(seen["RANK"], "3");
  EXPECT_EQ(seen["LRUN_STRATEGY"], "deepspeed");
  const WorkerEnvironment environment(plan, plan.nodes[1], base, {});
  EXPECT_EQ(environment.removed(), std::vector<std::string>()) << "they have other values, and are there";
  const std::vector<std::string>& shared = environment.shared();
  EXPECT_EQ(std::count_if(shared.begin(), shared.end(),
                          [](const std::string& entry) { return entry.starts_with("CROSS_RANK="); }),
            1);
}

TEST(WorkerEnvironment, KeepsTheSecretAndAnOuterRunFromWorkers) {
  const Environment base = environment_with({{"LRUN_JOB_SECRET", "hush"},
                                             {"LRUN_SRUN_PORT", "4711"},
                                             {"LRUN_SRUN_FOLDER", "/tmp"},
                                             {"LRUN_MODULE_PYTHON", "/usr/bin/python3"},
                                             {"LRUN_NTASKS_PER_NODE", "4"},
                                             {"LRUN_PROGRESS_FD", "9"},
                                             {"LRUN_RESUME", "1"},
                                             {"LRUN_SEED", "1"},
                                             {"LRUN_STRATEGY", "dp"},
                                             {"LRUN_RUN_ID", "outer"}});
  Variables seen = worker(plan_of(request_for("2"), cpu_node()), 0, base);
  EXPECT_EQ(seen.count("LRUN_JOB_SECRET"), 0U);
  EXPECT_EQ(seen.count("LRUN_SRUN_PORT"), 0U);
  EXPECT_EQ(seen.count("LRUN_SRUN_FOLDER"), 0U);
  EXPECT_EQ(seen.count("LRUN_MODULE_PYTHON"), 0U);
  EXPECT_EQ(seen.count("LRUN_NTASKS_PER_NODE"), 0U);
  EXPECT_EQ(seen.count("LRUN_PROGRESS_FD"), 0U);
  EXPECT_EQ(seen.count("LRUN_RESUME"), 0U);
  EXPECT_EQ(seen.count("LRUN_SEED"), 0U) << "this run has none";
  EXPECT_EQ(seen["LRUN_STRATEGY"], "ddp");
  EXPECT_EQ(seen["LRUN_RUN_ID"], "demo");
}

TEST(WorkerEnvironment, PassesOnFromWhichCheckpointToGoOn) {
  const Environment base = environment_with({{"LRUN_RESUME", "checkpoints"}});
  EXPECT_EQ(worker(plan_of(request_for("2"), cpu_node()), 0, base).at("LRUN_RESUME"), "checkpoints");
}

TEST(WorkerEnvironment, KeepsTheUsersNcclAndThreadSettings) {
  const Environment base = environment_with({{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"}, {"OMP_NUM_THREADS", "6"}});
  Variables seen = worker(plan_of(request_for("2"), cpu_node(), base), 0, base);
  EXPECT_EQ(seen["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "0");
  EXPECT_EQ(seen["OMP_NUM_THREADS"], "6");
  EXPECT_EQ(worker(plan_of(request_for("2"), cpu_node()), 0)["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "1");
}

TEST(WorkerEnvironment, LetsPythonSayWhereItCrashedUnlessTheUserSaysOtherwise) {
  EXPECT_EQ(worker(plan_of(request_for("2"), cpu_node()), 0)["PYTHONFAULTHANDLER"], "1");
  const Environment off = environment_with({{"PYTHONFAULTHANDLER", ""}});
  const Variables seen = worker(plan_of(request_for("2"), cpu_node(), off), 0, off);
  EXPECT_EQ(seen.at("PYTHONFAULTHANDLER"), "") << "empty: off";
  LaunchPlan unset = plan_of(request_for("2"), cpu_node());
  unset.setup.environment.push_back({.kind = EnvironmentChange::Kind::kUnset, .name = "PYTHONFAULTHANDLER"});
  EXPECT_EQ(worker(unset, 0).count("PYTHONFAULTHANDLER"), 0U);
  EXPECT_FALSE(is_given_by_lrun("PYTHONFAULTHANDLER")) << "so '--env PYTHONFAULTHANDLER=' is taken";
}

TEST(WorkerEnvironment, LeavesBreakpointsToTheRankInADebugger) {
  LaunchRequest request = request_for("2");
  EXPECT_EQ(worker(plan_of(request, cpu_node()), 0).count("PYTHONBREAKPOINT"), 0U);
  request.setup.debug_rank = {1, Source::kFlag, "--debug-rank"};
  EXPECT_EQ(worker(plan_of(request, cpu_node()), 0)["PYTHONBREAKPOINT"], "0");
  EXPECT_EQ(worker(plan_of(request, cpu_node()), 1).count("PYTHONBREAKPOINT"), 0U);
  const Environment own = environment_with({{"PYTHONBREAKPOINT", "web_pdb.set_trace"}});
  EXPECT_EQ(worker(plan_of(request, cpu_node(), own), 0, own)["PYTHONBREAKPOINT"], "web_pdb.set_trace");
  request.setup.environment.push_back({.kind = EnvironmentChange::Kind::kUnset, .name = "PYTHONBREAKPOINT"});
  EXPECT_EQ(worker(plan_of(request, cpu_node()), 0).count("PYTHONBREAKPOINT"), 0U);
}

TEST(WorkerEnvironment, SpellsDevicesAsTheProcessSeesThem) {
  const auto devices = [](LaunchRequest request, const std::string& strategy, const AllocatedNode& node, int rank) {
    if (!strategy.empty()) request.strategy = strategy_flag(strategy);
    return worker(plan_of(request, node), rank)["LRUN_DEVICES"];
  };
  EXPECT_EQ(devices(request_for("2"), "", cpu_node(), 1), "cpu");
  EXPECT_EQ(devices(request_for("3"), "dp", cpu_node(), 0), "cpu,cpu,cpu");
  EXPECT_EQ(devices(request_for("2,3"), "", gpu_node(4), 0), "cuda:0") << "2 and 3 are all it sees";
  EXPECT_EQ(devices(request_for("2,3"), "", gpu_node(4), 1), "cuda:1");
  EXPECT_EQ(devices(request_for("2,3"), "ddp2", gpu_node(4), 0), "cuda:0,cuda:1");
  EXPECT_EQ(devices(request_for_processes("2"), "", gpu_node(4), 1), "cuda:1");
}

TEST(WorkerEnvironment, NamesTheMemoryFolderOfThisRunOnly) {
  const Environment outer = environment_with({{"LRUN_MEMORY_DIR", "/dev/shm/outer"}});
  const LaunchPlan plan = plan_of(request_for("1"), cpu_node(), outer);
  EXPECT_EQ(worker(plan, 0, outer).count("LRUN_MEMORY_DIR"), 0U);
  RunFacts facts;
  facts.memory_folder = "/dev/shm/inner";
  EXPECT_EQ(worker(plan, 0, outer, facts)["LRUN_MEMORY_DIR"], "/dev/shm/inner");
}

TEST(WorkerEnvironment, ShowsAllGpusOfTheNodeToEveryWorker) {
  const LaunchPlan plan = plan_of(request_for("2,3"), gpu_node(4));
  EXPECT_EQ(worker(plan, 0)["CUDA_VISIBLE_DEVICES"], "2,3");
  EXPECT_EQ(worker(plan, 1)["CUDA_VISIBLE_DEVICES"], "2,3");
}

TEST(WorkerEnvironment, UsesTheVendorsVariable) {
  const Environment base = environment_with({{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}});
  AllocatedNode node = gpu_node(4);
  node.gpus.vendor = GpuVendor::kAmd;
  Variables amd = worker(plan_of(request_for("2,3"), node, base), 1, base);
  EXPECT_EQ(amd["HIP_VISIBLE_DEVICES"], "2,3");
  EXPECT_EQ(amd.count("CUDA_VISIBLE_DEVICES"), 0U) << "HIP reads it as well, it must not contradict";
  EXPECT_EQ(amd["LRUN_DEVICES"], "cuda:1") << "what LibTorch for ROCm calls it";
  EXPECT_EQ(amd["LRUN_PROCESS_GROUP_BACKEND"], "nccl");
  node.gpus.vendor = GpuVendor::kIntel;
  Variables intel = worker(plan_of(request_for("2,3"), node, base), 1, base);
  EXPECT_EQ(intel["ZE_AFFINITY_MASK"], "2,3");
  EXPECT_EQ(intel["CUDA_VISIBLE_DEVICES"], "0,1,2,3") << "not theirs, and not ours to take away";
  EXPECT_EQ(intel["LRUN_DEVICES"], "xpu:1");
  EXPECT_EQ(intel["LRUN_PROCESS_GROUP_BACKEND"], "xccl");
}

TEST(WorkerEnvironment, MakesCudaCountAsLrunDoes) {
  const auto order = [](const LaunchRequest& request, const Environment& base) {
    return worker(plan_of(request, gpu_node(4), base), 0, base)["CUDA_DEVICE_ORDER"];
  };
  EXPECT_EQ(order(request_for("2,3"), Environment()), "PCI_BUS_ID");
  EXPECT_EQ(order(request_for("4"), Environment()), "") << "nothing was chosen";
  EXPECT_EQ(order(request_for("1,"), environment_with({{"CUDA_VISIBLE_DEVICES", "2,3"}})), "") << "the user's numbers";
  EXPECT_EQ(order(request_for("2,3"), environment_with({{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}})), "FASTEST_FIRST");
}

TEST(WorkerEnvironment, IsolatesWorkersOnInstances) {
  AllocatedNode node = gpu_node(1);
  for (const char* uuid : {"MIG-ab", "MIG-cd"}) node.gpus.gpus.push_back({1, uuid, uuid, false, "GPU-1aaa"});
  const LaunchPlan plan = plan_of(request_for("-1"), node);
  Variables last = worker(plan, 2);
  EXPECT_EQ(last["CUDA_VISIBLE_DEVICES"], "MIG-cd");
  EXPECT_EQ(last["LOCAL_RANK"], "0");
  EXPECT_EQ(last["LRUN_DEVICES"], "cuda:0");
  EXPECT_EQ(worker(plan, 0)["CUDA_VISIBLE_DEVICES"], "0");
  Variables alone = worker(plan_of(request_for("MIG-ab,"), node), 0);
  EXPECT_EQ(alone["CUDA_VISIBLE_DEVICES"], "MIG-ab");
}

TEST(WorkerEnvironment, LeavesVisibleDevicesAloneOnCpus) {
  const Environment base = environment_with({{"CUDA_VISIBLE_DEVICES", "5,6,7"}});
  EXPECT_EQ(worker(plan_of(request_for("2"), cpu_node(), base), 0, base)["CUDA_VISIBLE_DEVICES"], "5,6,7");
  EXPECT_EQ(worker(plan_of(request_for("2"), cpu_node()), 0).count("CUDA_VISIBLE_DEVICES"), 0U);
}

TEST(WorkerEnvironment, IsolatedWorkersHaveOneGpuAndLocalRankZero) {
  LaunchRequest request = request_for("2,3");
  request.isolate_gpus = true;
  const LaunchPlan plan = plan_of(request, gpu_node(4));
  for (int rank = 0; rank < 2; ++rank) {
    Variables seen = worker(plan, rank, Environment(), {1, "", 0, "/logs"});
    EXPECT_EQ(seen["RANK"], std::to_string(rank));
    EXPECT_EQ(seen["LOCAL_RANK"], "0");
    EXPECT_EQ(seen["LOCAL_WORLD_SIZE"], "2");
    EXPECT_EQ(seen["CUDA_VISIBLE_DEVICES"], std::to_string(rank + 2));
    EXPECT_EQ(seen["LRUN_DEVICES"], "cuda:0");
    EXPECT_EQ(seen["TORCHELASTIC_ERROR_FILE"], "/logs/" + std::to_string(rank) + "/error.json");
  }
}

TEST(WorkerEnvironment, IsolatesByNameWhereNoGpuWasFoundAsTorchrun) {
  // The table of launch-contract 2.2, seen with torchrun on a machine without GPUs.
  LaunchRequest request = request_for_processes("2");
  request.isolate_gpus = true;
  const auto seen = [&](const Environment& base, int rank) {
    return worker(plan_of(request, cpu_node(), base), rank, base)["CUDA_VISIBLE_DEVICES"];
  };
  EXPECT_EQ(seen(Environment(), 0), "0");
  EXPECT_EQ(seen(Environment(), 1), "1");
  EXPECT_EQ(seen(environment_with({{"CUDA_VISIBLE_DEVICES", "3, 5"}}), 0), "3");
  EXPECT_EQ(seen(environment_with({{"CUDA_VISIBLE_DEVICES", "3, 5"}}), 1), "5");
  EXPECT_EQ(seen(environment_with({{"CUDA_VISIBLE_DEVICES", "GPU-aaa,GPU-bbb"}}), 1), "GPU-bbb");
  EXPECT_EQ(refusal_of([&] {
              seen(environment_with({{"CUDA_VISIBLE_DEVICES", "3"}}), 0);
            }),
            "local rank 1 has no GPU in CUDA_VISIBLE_DEVICES='3' | use '--nproc-per-node 1', or name more GPUs");
}

}  // namespace
}  // namespace lrun::launcher
