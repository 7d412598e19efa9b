#include "plan/task_place.h"

#include <gtest/gtest.h>

#include <string>

#include "plan/job_place.h"
#include "rendezvous/rank_assignment.h"
#include "support/mentions.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

/// Rank 5 of `srun -N2 --ntasks-per-node=4`, on the second node.
constexpr int kRank = 5;

Allocation task_on(const AllocatedNode& node, int gpus_given = 0) {
  JobPlace place{"slurm-12.0", "n1", 15'012, 1};
  place.task = TaskPlace{kRank, 8, 1, 4, 1, 2, {4, 4}};
  AllocatedNode first = node;
  first.name = "n1";
  Allocation allocation{{node, first}, "Slurm step 12.0", "SLURM_STEP_ID", std::move(place)};
  allocation.tasks_of_step = 8;
  allocation.gpus_given = gpus_given;
  return allocation;
}

std::string refusal_in(const Allocation& allocation, const LaunchRequest& request) {
  return refusal_of([&] { (void)plan_in(allocation, request); });
}

TEST(TaskPlace, ThatNoLauncherCanHaveIsAnErrorOfAll) {
  const auto is_of_all = [](const Allocation& allocation, const LaunchRequest& request) {
    try {
      (void)plan_in(allocation, request);
    } catch (const ErrorOfAllTasks&) {
      return true;
    } catch (const UserError&) {
    }
    return false;
  };
  Allocation task = task_on(cpu_node());
  EXPECT_TRUE(is_of_all(task, request_for_processes("4")));
  EXPECT_TRUE(is_of_all(task, request_for("2")));
  LaunchRequest of_three = request_for("4");
  of_three.num_nodes = {3, Source::kFlag, "--num_nodes"};
  EXPECT_TRUE(is_of_all(task, of_three));
  task.job->task->ranks_by_node = {4, 2};
  EXPECT_FALSE(is_of_all(task, request_for("2"))) << "the other node has two";
  Allocation launcher_a_node = task_on(cpu_node());
  launcher_a_node.job->task.reset();
  launcher_a_node.tasks_of_step = 2;
  LaunchRequest same_rank = request_for("2");
  same_rank.num_nodes = {2, Source::kScheduler, "SLURM_NNODES"};
  same_rank.rendezvous.node_rank = {5, Source::kEnvironment, "PET_NODE_RANK"};
  EXPECT_THAT(refusal_in(launcher_a_node, same_rank), testing::HasSubstr("'PET_NODE_RANK=5'"));
  EXPECT_FALSE(is_of_all(launcher_a_node, same_rank)) << "it may be right for the first task";
}

TEST(TaskPlace, IsALaunchOfOneRankWithThePlaceThatSlurmGives) {
  const LaunchPlan plan = plan_in(task_on(cpu_node()), request_for(""));
  EXPECT_EQ(plan.world_size, 8);
  EXPECT_EQ(plan.num_nodes, 2);
  ASSERT_EQ(plan.nodes.size(), 1U);
  ASSERT_EQ(plan.nodes.front().workers.size(), 1U);
  const WorkerEnvironment environment(plan, plan.nodes.front(), Environment(), {15'012, "10.0.0.1", 0, ""});
  auto variables = variables_of(environment, plan.nodes.front().workers.front());
  EXPECT_EQ(variables["RANK"], "5");
  EXPECT_EQ(variables["LOCAL_RANK"], "1");
  EXPECT_EQ(variables["WORLD_SIZE"], "8");
  EXPECT_EQ(variables["LOCAL_WORLD_SIZE"], "4");
  EXPECT_EQ(variables["GROUP_RANK"], "1");
  EXPECT_EQ(variables["GROUP_WORLD_SIZE"], "2");
  EXPECT_EQ(text_of(plan.strategy.value), "ddp");
  EXPECT_EQ(text_of(plan.process_group_backend.value), "shm+gloo");
}

/// `srun -n 6` on nodes of three, one and two tasks.
TEST(TaskPlace, TellsHorovodWhereItIsAmongTheNodes) {
  Allocation allocation = task_on(cpu_node());
  *allocation.job->task = TaskPlace{5, 6, 1, 2, 2, 3, {3, 1, 2}};
  LaunchRequest request = request_for("");
  request.strategy = strategy_flag("horovod");
  const LaunchPlan plan = plan_in(allocation, request);
  // A membership with one launcher per rank is of no use: it has six nodes of one worker.
  const WorkerEnvironment environment(plan, plan.nodes.front(), Environment(), {.master_port = 15'012});
  auto variables = variables_of(environment, plan.nodes.front().workers.front());
  EXPECT_EQ(variables["HOROVOD_SIZE"], "6");
  EXPECT_EQ(variables["HOROVOD_RANK"], "5");
  EXPECT_EQ(variables["HOROVOD_LOCAL_SIZE"], "2");
  EXPECT_EQ(variables["HOROVOD_LOCAL_RANK"], "1");
  EXPECT_EQ(variables["HOROVOD_CROSS_SIZE"], "2") << "the second node has no local rank 1";
  EXPECT_EQ(variables["HOROVOD_CROSS_RANK"], "1");
}

TEST(TaskPlace, MeetsTheLaunchersOfAllRanks) {
  const LaunchPlan plan = plan_in(task_on(cpu_node()), request_for(""));
  ASSERT_TRUE(plan.rendezvous);
  EXPECT_EQ(plan.rendezvous->max_nodes, 8);
  EXPECT_EQ(plan.rendezvous->min_nodes, 8);
  EXPECT_EQ(plan.rendezvous->node_rank, kRank);
  EXPECT_EQ(plan.rendezvous->hosting, RendezvousPlan::Hosting::kNever);
  EXPECT_TRUE(plan.rendezvous->of_ranks);
  Allocation first = task_on(cpu_node());
  first.job->task->rank = first.job->task->local_rank = 0;
  EXPECT_EQ(plan_in(first, request_for("")).rendezvous->hosting, RendezvousPlan::Hosting::kMust);
}

TEST(TaskPlace, KeepsItsPlaceWhenTheLaunchersHaveMet) {
  const LaunchPlan plan = plan_in(task_on(cpu_node()), request_for(""));
  std::vector<JoinRecord> records;
  for (int rank = 0; rank < 8; ++rank) {
    records.push_back({.token = std::to_string(rank), .node = "n", .address = "10.0.0.1", .node_rank = rank});
  }
  const RankAssignment assignment = assign_ranks(records);
  Membership membership = assignment.common;
  membership.self = assignment.members[kRank];
  const LaunchPlan met = place(plan, membership);
  EXPECT_EQ(met.nodes, plan.nodes);
  EXPECT_EQ(met.num_nodes, 2);
  EXPECT_EQ(met.world_size, 8);
}

TEST(TaskPlace, OnOneNodeMeetsAllTheSame) {
  Allocation allocation = task_on(cpu_node());
  allocation.nodes.resize(1);
  allocation.job->node_rank = 0;
  *allocation.job->task = TaskPlace{1, 4, 1, 4, 0, 1, {4}};
  const LaunchPlan plan = plan_in(allocation, request_for(""));
  ASSERT_TRUE(plan.rendezvous);
  EXPECT_EQ(plan.rendezvous->max_nodes, 4);
  EXPECT_EQ(text_of(plan.process_group_backend.value), "shm");
}

TEST(TaskPlace, TakesTheGpuOfItsLocalRankWhereAllAreSeen) {
  for (const char* const devices : {"", "auto", "-1", "4", "1"}) {
    const LaunchPlan plan = plan_in(task_on(gpu_node(4)), request_for(devices));
    EXPECT_EQ(ids_of(plan.nodes.front().devices), "gpu1") << devices;
    EXPECT_FALSE(plan.isolate_gpus);
  }
  EXPECT_EQ(ids_of(plan_in(task_on(gpu_node(8)), request_for("2,3,6,7")).nodes.front().devices), "gpu3");
}

TEST(TaskPlace, TakesTheOneGpuThatItIsShown) {
  AllocatedNode node = gpu_node(1);
  node.gpus.gpus.front().visible_as = "2";
  for (const char* const devices : {"", "auto", "1", "4"}) {
    const LaunchPlan plan = plan_in(task_on(node, 4), request_for(devices));
    const WorkerEnvironment environment(plan, plan.nodes.front(), Environment(), {});
    auto variables = variables_of(environment, plan.nodes.front().workers.front());
    EXPECT_EQ(variables["CUDA_VISIBLE_DEVICES"], "2") << devices;
    EXPECT_EQ(variables["LRUN_DEVICES"], "cuda:0") << devices;
    EXPECT_EQ(variables["LOCAL_RANK"], "0") << devices;
    EXPECT_EQ(variables["LOCAL_WORLD_SIZE"], "4") << devices;
    EXPECT_EQ(plan.notes.size(), 1U) << "says so";
  }
}

TEST(TaskPlace, SharesTheCpusOfTheNodeUnlessSlurmBoundIt) {
  Allocation allocation = task_on(cpu_node(16));
  allocation.cpus_given = 16;
  EXPECT_EQ(plan_in(allocation, request_for("")).omp_num_threads, 4) << "four ranks share 16";
  allocation = task_on(cpu_node(3));
  allocation.cpus_given = 16;
  EXPECT_EQ(plan_in(allocation, request_for("")).omp_num_threads, 3) << "its own";
}

TEST(TaskPlace, RefusesRanksThatLaunchersHaveAlready) {
  EXPECT_EQ(refusal_in(task_on(cpu_node()), request_for_processes("4")),
            "'--nproc-per-node 4' counts the workers of one launcher, and this node has 4 launchers of one rank each | "
            "leave it out, or write 'srun --nodes=2 --ntasks=2 --ntasks-per-node=1 lrun --nproc-per-node 4 …'");
  EXPECT_EQ(refusal_in(task_on(cpu_node()), request_for_processes("1")), "");
  EXPECT_EQ(refusal_in(task_on(cpu_node()), request_for("3")),
            "'--devices 3' makes 3 ranks here, and this node has 4 launchers of one rank each | leave it out, or write "
            "'srun --nodes=2 --ntasks=2 --ntasks-per-node=1 lrun --devices 3 …'");
  EXPECT_EQ(refusal_in(task_on(gpu_node(8)), request_for("auto")),
            "'--devices auto' makes 8 ranks here, and this node has 4 launchers of one rank each | leave it out, or "
            "write 'srun --nodes=2 --ntasks=2 --ntasks-per-node=1 lrun --devices auto …'");
}

TEST(TaskPlace, RefusesInTheWordsOfItsManager) {
  Allocation allocation = task_on(cpu_node());
  for (const auto& [starter, line] : {std::pair("mpirun --map-by ppr:{}:node", "mpirun --map-by ppr:1:node lrun "),
                                      std::pair("mpiexec -ppn {}", "mpiexec -ppn 1 lrun ")}) {
    allocation.job->starter = allocation.job->task->starter = starter;
    EXPECT_THAT(refusal_in(allocation, request_for("3")), mentions({"write '" + std::string(line) + "--devices 3 …'"}));
  }
  EXPECT_EQ(starter_line("flux run --tasks-per-node={}", 2, 8), "flux run --tasks-per-node=8 lrun …");
  EXPECT_EQ(starter_line("flux run --tasks-per-node={}", 1, 8), "flux run -n 8 lrun …");
  EXPECT_EQ(starter_line("mpirun --map-by ppr:{}:node", 1, 1, "-n 4"), "lrun -n 4 …") << "needs no mpirun";
  EXPECT_EQ(starter_line("", 1, 1, "-n 4"), "srun --nodes=1 --ntasks=1 --ntasks-per-node=1 lrun -n 4 …");
}

TEST(TaskPlace, RefusesGpusThatWouldBeIdleOrAreMissing) {
  EXPECT_THAT(refusal_in(task_on(gpu_node(8), 8), request_for("")),
              mentions({"4 GPUs", "8", "4 launchers", "'srun --nodes=2 --ntasks=16 --ntasks-per-node=8 lrun …'",
                        "'lrun --devices 4 …'"}));
  EXPECT_EQ(refusal_in(task_on(gpu_node(8), 8), request_for("4")), "");
  EXPECT_EQ(refusal_in(task_on(gpu_node(8)), request_for("")), "") << "nobody gave them to this job";
  EXPECT_EQ(refusal_in(task_on(gpu_node(2), 2), request_for("")),
            "this node has 2 GPUs, and 4 launchers of one rank each | write 'srun --nodes=2 --ntasks=4 "
            "--ntasks-per-node=2 lrun …', or 'lrun "
            "--accelerator cpu …' for ranks on CPUs");
  EXPECT_THAT(refusal_in(task_on(gpu_node(2), 8), request_for("")),
              mentions({"2 GPUs", "'srun --gpus-per-task=1 lrun …'", "'lrun --devices 1 …'"}));
}

TEST(TaskPlace, RefusesWhatIsNotARankADevice) {
  for (const char* const strategy : {"dp", "ddp2", "ddp_spawn"}) {
    LaunchRequest request = request_for("");
    request.strategy = strategy_flag(strategy);
    Allocation allocation = task_on(cpu_node());
    EXPECT_EQ(refusal_in(allocation, request),
              std::string("strategy '") + strategy +
                  "' has one process on a node, and this node has 4 launchers of one rank each | write 'srun "
                  "--nodes=2 --ntasks=2 --ntasks-per-node=1 lrun --devices 4 …'");
  }
  LaunchRequest elastic = request_for("");
  elastic.num_nodes = {2, Source::kFlag, "--nnodes"};
  elastic.min_nodes = 1;
  EXPECT_THAT(
      refusal_in(task_on(cpu_node()), elastic),
      mentions({"'--nnodes'", "12.0", "'srun --nodes=2 --ntasks=2 --ntasks-per-node=1 lrun --nnodes MIN:MAX …'"}));
}

TEST(TaskPlace, LeavesTpusToOneLauncherOfANode) {
  AllocatedNode node = cpu_node();
  node.tpus = {.asked = true, .chips = 4, .cores_per_chip = 1};
  LaunchRequest request = request_for("");
  request.strategy = strategy_flag("tpu");
  EXPECT_EQ(refusal_in(task_on(node), request),
            "strategy 'tpu' starts all workers of a node from one launcher, and this node has 4 launchers of one rank "
            "each | write 'srun --nodes=2 --ntasks=2 --ntasks-per-node=1 lrun --devices 4 …'");
  request.accelerator = accelerator_flag(DeviceKind::kCpu);
  const LaunchPlan trial = plan_in(task_on(node), request);
  const WorkerEnvironment environment(trial, trial.nodes.front(), Environment(), {15'012, "10.0.0.1", 0, ""});
  auto variables = variables_of(environment, trial.nodes.front().workers.front());
  EXPECT_EQ(variables["PJRT_DEVICE"], "CPU");
  EXPECT_EQ(variables["PJRT_LOCAL_PROCESS_COUNT"], "4") << "of the node, as many launchers";
  EXPECT_EQ(variables["PJRT_LOCAL_PROCESS_RANK"], "1");
}

TEST(TaskPlace, IsTold) {
  const Allocation allocation = task_on(cpu_node());
  EXPECT_THAT(
      describe_place(placed(request_for(""), allocation), allocation),
      mentions({"Slurm step 12.0", "8 on 2 nodes", "rank 5", "local rank 1 of 4", "node rank 1", "n1", "15012"}));
}

}  // namespace
}  // namespace lrun::launcher
