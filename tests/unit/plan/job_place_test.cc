#include "plan/job_place.h"

#include <gtest/gtest.h>

#include <string>

#include "support/mentions.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

TEST(JobPlace, MakesARunOfSeveralNodesOutOfARequestThatNamesNone) {
  const LaunchPlan plan = plan_in(step_of_three(1), request_for("2"));
  EXPECT_EQ(plan.num_nodes, 3);
  EXPECT_EQ(plan.world_size, 6);
  EXPECT_EQ(plan.run_name, "slurm-12.0");
  ASSERT_TRUE(plan.rendezvous);
  EXPECT_EQ(plan.rendezvous->host, "n1");
  EXPECT_EQ(plan.rendezvous->port, 15'012);
  EXPECT_EQ(plan.rendezvous->node_rank, 1);
  EXPECT_EQ(plan.rendezvous->hosting, RendezvousPlan::Hosting::kNever);
  EXPECT_EQ(plan_in(step_of_three(0), request_for("2")).rendezvous->hosting, RendezvousPlan::Hosting::kMust);
}

TEST(JobPlace, GivesASilentNodeMoreTimeWhereItsLossEndsTheJob) {
  LaunchRequest request = request_for("2");
  EXPECT_EQ(plan_in(step_of_three(1), request).rendezvous->heartbeat, Duration(15'000));
  request.rendezvous.heartbeat = Duration(2000);
  EXPECT_EQ(plan_in(step_of_three(1), request).rendezvous->heartbeat, Duration(2000)) << "as the user says";
  LaunchRequest elastic = request_for("2");
  elastic.num_nodes = {3, Source::kFlag, "--num_nodes"};
  elastic.min_nodes = 2;
  EXPECT_EQ(plan_in(step_of_three(1), elastic).rendezvous->heartbeat, Duration(5000));
}

TEST(JobPlace, TellsOnceWhatPeopleReadInOnePlace) {
  for (const bool shares_screen : {true, false}) {
    Allocation first = step_of_three(0);
    Allocation second = step_of_three(1);
    first.job->shares_screen = second.job->shares_screen = shares_screen;
    EXPECT_TRUE(speaks_for_job(plan_in(first, request_for("2"))));
    EXPECT_EQ(speaks_for_job(plan_in(second, request_for("2"))), !shares_screen);
  }
  LaunchPlan of_rank = plan_of(request_for("2"), cpu_node());
  of_rank.is_of_one_rank = true;
  of_rank.nodes.front().workers.front().local_rank = 1;
  EXPECT_FALSE(speaks_for_job(of_rank)) << "another launcher of its node does";
}

TEST(JobPlace, IsShownWithTheNodesInRankOrder) {
  LaunchRequest request = request_for("2");
  EXPECT_EQ(plan_in(step_of_three(1), request).nodes.front().name, "here") << "what runs here comes first";
  request.dry_run = DryRun::kText;
  const LaunchPlan shown = plan_in(step_of_three(1), request);
  EXPECT_EQ(shown.nodes[0].name, "n1");
  EXPECT_EQ(shown.nodes[1].name, "here");
  EXPECT_EQ(shown.nodes[2].name, "n3");
}

TEST(JobPlace, LeavesWhatTheUserSaid) {
  LaunchRequest request = request_for("2");
  request.rdzv_id = "mine";
  request.master_port = {29'111, Source::kFlag, "--master-port"};
  request.num_nodes = {3, Source::kFlag, "--num_nodes"};
  const LaunchPlan plan = plan_in(step_of_three(1), request);
  EXPECT_EQ(plan.run_name, "mine");
  EXPECT_EQ(plan.rendezvous->port, 29'111);
}

TEST(JobPlace, RefusesAnotherNumberOfNodes) {
  for (const int nodes : {1, 2, 4}) {
    LaunchRequest request = request_for("2");
    request.num_nodes = {nodes, Source::kFlag, "--num_nodes"};
    try {
      (void)placed(request, step_of_three(0));
      ADD_FAILURE() << nodes << " nodes were accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()), "'--num_nodes " + std::to_string(nodes) + "': Slurm step 12.0 has 3 nodes");
    }
  }
  LaunchRequest elastic = request_for("2");
  elastic.num_nodes = {4, Source::kFlag, "--nnodes"};
  elastic.min_nodes = 2;
  EXPECT_EQ(placed(elastic, step_of_three(0)).num_nodes.value, 3) << "3 are 2 to 4";
}

TEST(JobPlace, IsNotAskedForWhereTheUserNamesNodesOrTorchrunWould) {
  EXPECT_TRUE(leaves_nodes_to_manager(request_for("2")));
  LaunchRequest alone = request_for("2");
  alone.standalone = true;
  EXPECT_FALSE(leaves_nodes_to_manager(alone));
  LaunchRequest torchrun = request_for("2");
  torchrun.compat = Compat::kTorchrun;
  EXPECT_FALSE(leaves_nodes_to_manager(torchrun));
  LaunchRequest by_hand = request_for("2");
  by_hand.rendezvous.endpoint = endpoint_of("n1", 29'500);
  EXPECT_TRUE(leaves_nodes_to_manager(by_hand)) << "where to meet, and not how many";
  by_hand.num_nodes = {3, Source::kFlag, "--num_nodes"};
  EXPECT_FALSE(leaves_nodes_to_manager(by_hand));
  LaunchRequest with_rank = request_for("2");
  with_rank.rendezvous.node_rank = {1, Source::kFlag, "--node-rank"};
  EXPECT_FALSE(leaves_nodes_to_manager(with_rank));
  with_rank.rendezvous.node_rank = {1, Source::kEnvironment, "PET_NODE_RANK"};
  EXPECT_TRUE(leaves_nodes_to_manager(with_rank)) << "it may contradict Slurm's";
}

TEST(JobPlace, OfAStepOrABatchScriptIsNoVariables) {
  LaunchRequest request = request_for("2");
  request.rendezvous.node_rank = {1, Source::kEnvironment, "PET_NODE_RANK"};
  EXPECT_THAT(refusal_of([&] { (void)placed(request, step_of_three(2)); }),
              mentions({"'PET_NODE_RANK=1'", "2", "12.0", "'--num-nodes'", "'--node-rank'", "'--rdzv-endpoint'"}));
  EXPECT_EQ(placed(request, step_of_three(1)).num_nodes.value, 3) << "they agree";
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 3;
  EXPECT_THAT(refusal_of([&] { (void)placed(request, script); }),
              mentions({"'PET_NODE_RANK=1'", "3 nodes", "12", "'--num-nodes'", "'--node-rank'", "'--rdzv-endpoint'"}));
  request.num_nodes = {1, Source::kFlag, "--num_nodes"};
  EXPECT_EQ(nodes_to_start(placed(request, script), script), 0);
}

TEST(JobPlace, TellsOfTasksThatStartNoWorkers) {
  Allocation script{{cpu_node()}, "this host", "no manager names other nodes"};
  EXPECT_EQ(note_of_unused_tasks(LaunchRequest(), script, 4),
            "this job has 4 tasks, and lrun starts one worker on its node; for a worker a task write 'srun lrun …', or "
            "submit with '--ntasks-per-node=4'");
  EXPECT_EQ(note_of_unused_tasks(LaunchRequest(), script, 1), "");
  EXPECT_EQ(note_of_unused_tasks(request_for("4"), script, 4), "") << "the user says so";
  script.nodes_to_start = 2;
  EXPECT_EQ(
      note_of_unused_tasks(LaunchRequest(), script, 3),
      "this job has 3 tasks, and lrun starts one worker on each of 2 nodes; for a worker a task write 'srun lrun …'");
  EXPECT_EQ(note_of_unused_tasks(LaunchRequest(), script, 2), "");
  LaunchRequest gpus;
  gpus.accelerator = {DeviceKind::kGpu, Source::kFlag, "--accelerator"};
  EXPECT_EQ(note_of_unused_tasks(gpus, script, 4), "") << "tasks are then often a way to ask for CPUs";
}

TEST(JobPlace, RunsOnANodeOfTheJobAndNotOnALoginNode) {
  Allocation shell{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  shell.nodes_to_start = 1;
  shell.is_outside = true;
  LaunchRequest request = request_for("2");
  request.rendezvous.node_rank = {0, Source::kEnvironment, "NODE_RANK"};
  EXPECT_EQ(nodes_to_start(placed(request, shell), shell), 1);
  shell.nodes_to_start = 2;
  request.num_nodes = {1, Source::kFlag, "--num_nodes"};
  EXPECT_EQ(nodes_to_start(placed(request, shell), shell), 1);
  request.num_nodes.value = 3;
  shell.nodes_to_start = 1;
  EXPECT_THAT(refusal_of([&] { (void)placed(request, shell); }),
              mentions({"'--num_nodes 3': Slurm job 12 has 1 node"}));
}

TEST(JobPlace, RefusesMoreLaunchersThanNodesWhereTheUserNamedTheRendezvous) {
  Allocation allocation{{cpu_node()}, "this host", "nothing names other nodes"};
  allocation.tasks_of_step = 8;
  LaunchRequest request = request_for("4");
  request.rendezvous.endpoint = {{"n1", 29'500}, Source::kFlag, "--rdzv-endpoint"};
  request.num_nodes = {2, Source::kFlag, "--nnodes"};
  EXPECT_THAT(refusal_of([&] { (void)placed(request, allocation); }),
              mentions({"'--nnodes 2'", "8 tasks", "'srun --nodes=2 --ntasks=2 --ntasks-per-node=1 lrun …'"}));
  allocation.tasks_of_step = 2;
  EXPECT_EQ(placed(request, allocation), request);
  request.compat = Compat::kTorchrun;
  allocation.tasks_of_step = 8;
  EXPECT_EQ(placed(request, allocation), request) << "torchrun does not look";
}

TEST(JobPlace, LetsSparesWait) {
  LaunchRequest request = request_for("2");
  request.spares = {1, Source::kFlag, "--spares"};
  const LaunchPlan plan = plan_in(step_of_three(2), request);
  EXPECT_EQ(plan.num_nodes, 2);
  EXPECT_EQ(plan.world_size, 4);
  ASSERT_TRUE(plan.rendezvous);
  EXPECT_EQ(plan.rendezvous->max_nodes, 2);
  EXPECT_EQ(plan.rendezvous->min_nodes, 2);
  EXPECT_EQ(plan.rendezvous->spares, 1);
  EXPECT_EQ(plan.rendezvous->node_rank, 2) << "its place among all nodes of the step";
  request.spares.value = 2;
  EXPECT_TRUE(plan_in(step_of_three(0), request).rendezvous) << "a run of one node has somebody to meet, too";
}

TEST(JobPlace, StartsLaunchersOnSparesToo) {
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 4;
  LaunchRequest request = request_for("2");
  request.spares = {1, Source::kFlag, "--spares"};
  EXPECT_EQ(placed(request, script).num_nodes.value, 3);
  EXPECT_EQ(nodes_to_start(placed(request, script), script), 4);
  request.num_nodes = {1, Source::kFlag, "--num_nodes"};
  EXPECT_EQ(nodes_to_start(placed(request, script), script), 2);
  request.num_nodes.value = 4;
  EXPECT_THAT(refusal_of([&] { (void)placed(request, script); }),
              mentions({"'--num_nodes 4'", "12", "4 nodes", "1", "'--num_nodes'"}));
}

TEST(JobPlace, RefusesSparesThatCannotBe) {
  LaunchRequest request = request_for("2");
  request.spares = {3, Source::kFlag, "--spares"};
  EXPECT_THAT(refusal_of([&] { (void)placed(request, step_of_three(0)); }),
              mentions({"'--spares 3'", "12.0", "3 nodes", "'--spares 2'"}));
  const Allocation here{{cpu_node()}, "this host", "nothing names other nodes"};
  EXPECT_THAT(refusal_of([&] { (void)placed(request, here); }), mentions({"'--spares 3'", "'--num-nodes'"}));
  Allocation ranks = step_of_three(0);
  ranks.job->task = TaskPlace{0, 6, 0, 2, 0, 3, {2, 2, 2}};
  EXPECT_THAT(refusal_of([&] { (void)placed(request, ranks); }),
              mentions({"'--spares 3'", "12.0", "'srun --nodes=3 --ntasks=3 --ntasks-per-node=1 lrun --spares 3 …'"}));
}

TEST(JobPlace, RefusesToLeaveGpusOfTheJobIdleUnlessItIsSaid) {
  Allocation allocation = step_of_three(0);
  allocation.gpus_given = 4;
  EXPECT_EQ(refusal_of([&] { (void)placed(request_for(""), allocation); }), "") << "there are none that work";
  allocation.nodes.front() = gpu_node(4);
  EXPECT_THAT(refusal_of([&] { (void)placed(request_for(""), allocation); }),
              mentions({"4 GPUs", "'--devices'", "'lrun --devices auto …'", "'--devices 1'"}));
  EXPECT_EQ(refusal_of([&] { (void)placed(request_for("1"), allocation); }), "");
  LaunchRequest on_cpus = request_for("");
  on_cpus.accelerator = accelerator_flag(DeviceKind::kCpu);
  EXPECT_EQ(refusal_of([&] { (void)placed(on_cpus, allocation); }), "");
  allocation.gpus_given = 1;
  EXPECT_EQ(refusal_of([&] { (void)placed(request_for(""), allocation); }), "");
}

TEST(JobPlace, OfABatchScriptHasAWorkerForEachTaskThatItAskedFor) {
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  const auto workers = [&](const LaunchRequest& request, int tasks) {
    return with_tasks_asked(request, script, tasks).nproc_per_node;
  };
  const LaunchRequest silent = request_for("");
  EXPECT_EQ(
      workers(silent, 4),
      (Setting<DeviceRequest>{{DeviceRequest::Kind::kProcesses, 4}, Source::kScheduler, "SLURM_NTASKS_PER_NODE"}));
  EXPECT_EQ(plan_in(script, with_tasks_asked(silent, script, 4)).world_size, 4);
  EXPECT_FALSE(workers(silent, 1).given());
  EXPECT_FALSE(workers(request_for("2"), 4).given());
  EXPECT_EQ(workers(request_for_processes("2"), 4).value.number(), 2);
  LaunchRequest other = silent;
  other.standalone = true;
  EXPECT_FALSE(workers(other, 4).given());
  other = silent;
  other.compat = Compat::kTorchrun;
  EXPECT_FALSE(workers(other, 4).given());
  Allocation of_mpirun = script;
  of_mpirun.job.emplace().starter = "mpirun --map-by ppr:{}:node";
  EXPECT_FALSE(with_tasks_asked(silent, of_mpirun, 4).nproc_per_node.given()) << "these are the tasks";
  script.nodes.front() = gpu_node(4);
  EXPECT_FALSE(workers(silent, 4).given()) << "idle GPUs are refused with the line to type";
  other = silent;
  other.accelerator = accelerator_flag(DeviceKind::kCpu);
  EXPECT_EQ(workers(other, 4).value.number(), 4);
}

TEST(JobPlace, OfABatchScriptIsAllItsNodesOrAsManyAsWereAskedFor) {
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 3;
  const auto nodes = [&](int asked, int least) {
    LaunchRequest request = request_for("2");
    if (asked > 0) request.num_nodes = {asked, Source::kFlag, "--num_nodes"};
    request.min_nodes = least;
    return nodes_to_start(placed(request, script), script);
  };
  EXPECT_EQ(nodes(0, 0), 3);
  EXPECT_EQ(nodes(3, 0), 3);
  EXPECT_EQ(nodes(2, 0), 2);
  EXPECT_EQ(nodes(1, 0), 0) << "this node alone";
  EXPECT_EQ(nodes(4, 2), 3) << "3 are 2 to 4";
  EXPECT_THROW((void)nodes(4, 0), UserError);
  EXPECT_EQ(nodes_to_start(placed(request_for("2"), step_of_three(0)), step_of_three(0)), 0) << "they have started";
}

/// mpirun's variables for node `node_rank` of three; the address of node rank 0 is unknown.
Allocation tasks_of_three(int node_rank) {
  Allocation tasks{{cpu_node(16, "here"), cpu_node(16, "node1"), cpu_node(16, "node2")}, "Open MPI", "its variables"};
  tasks.job = JobPlace{"77", "", 0, node_rank};
  tasks.job->nodes_by = "SIZE";
  tasks.job->node_rank_by = "TASK";
  tasks.job->starter = "mpirun --map-by ppr:{}:node";
  return tasks;
}

std::string refusal_by(const LaunchRequest& request, const Allocation& allocation) {
  try {
    (void)placed(request, allocation);
  } catch (const UserError& error) {
    return std::string(error.what()) + "; " + error.hint();
  }
  return "none";
}

TEST(JobPlace, WithoutAPlaceToMeetIsRefusedWithThisHostsNameAndCanBeShown) {
  EXPECT_THAT(refusal_by(request_for("2"), tasks_of_three(0)),
              mentions({"3 launchers", "'--rdzv-endpoint here:29500'", "MASTER_ADDR", "0"}));
  EXPECT_THAT(refusal_by(request_for("2"), tasks_of_three(1)),
              mentions({"3 launchers", "'--rdzv-endpoint HOST:29500'", "MASTER_ADDR", "0"}));
  LaunchRequest shown = request_for("2");
  shown.dry_run = DryRun::kText;
  EXPECT_EQ(placed(shown, tasks_of_three(1)).num_nodes, (Setting<int>{3, Source::kScheduler, "SIZE"}));
}

TEST(JobPlace, NamesTheHostOfEachNodeRankUnlessTheUserNumbersThem) {
  Allocation job = tasks_of_three(1);
  job.job->host = "n1";
  job.job->hosts = {"n1", "n2", "n3"};
  LaunchRequest request = request_for("2");
  EXPECT_EQ(placed(request, job).rendezvous.hosts, job.job->hosts);
  request.rendezvous.node_rank = {0, Source::kFlag, "--node-rank"};
  EXPECT_TRUE(placed(request, job).rendezvous.hosts.empty());
}

TEST(JobPlace, TakesNodesAndRankWhereOnlyTheEndpointIsSaid) {
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = {{"n1", 29'111}, Source::kFlag, "--rdzv-endpoint"};
  ASSERT_TRUE(leaves_anything_to_manager(request));
  const LaunchRequest whole = placed(request, tasks_of_three(1));
  EXPECT_EQ(whole.num_nodes.value, 3);
  EXPECT_EQ(whole.rendezvous.node_rank, (Setting<int>{1, Source::kScheduler, "TASK"}));
  EXPECT_EQ(whole.rendezvous.endpoint, request.rendezvous.endpoint);
  EXPECT_EQ(describe_place(whole, tasks_of_three(1)),
            "Open MPI: 3 nodes (SIZE), this is node rank 1 (TASK); rendezvous at n1, port 29111 (--rdzv-endpoint)");
}

TEST(JobPlace, OfARunThatIsSaidWholeIsTheUsers) {
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = {{"n1", 29'111}, Source::kFlag, "--rdzv-endpoint"};
  request.num_nodes = {2, Source::kFlag, "--num_nodes"};
  Allocation crowded = tasks_of_three(1);
  crowded.job->tasks_here = 3;
  EXPECT_EQ(placed(request, crowded), request) << "two nodes on one host, say";
  EXPECT_EQ(placed(request, tasks_of_three(1)), request) << "other nodes than the manager's";
  request.rendezvous.node_rank = {0, Source::kFlag, "--node-rank"};
  EXPECT_FALSE(leaves_anything_to_manager(request));
  request.num_nodes.value = 3;
  EXPECT_EQ(placed(request, tasks_of_three(1)).rendezvous.node_rank.value, 0) << "a flag comes first";
  request.rendezvous.node_rank = {0, Source::kEnvironment, "PET_NODE_RANK"};
  EXPECT_TRUE(leaves_anything_to_manager(request)) << "a variable may contradict the manager";
  EXPECT_THAT(refusal_by(request, tasks_of_three(1)),
              mentions({"'PET_NODE_RANK=0'", "1 by TASK", "'--num-nodes'", "'--node-rank'", "'--rdzv-endpoint'"}));
}

TEST(JobPlace, ContradictedByAVariableIsRefusedNamingBoth) {
  LaunchRequest request = request_for("2");
  request.num_nodes = {2, Source::kEnvironment, "PET_NNODES"};
  EXPECT_THAT(refusal_by(request, tasks_of_three(1)), mentions({"'PET_NNODES=2'", "SIZE", "3 nodes"}));
  Allocation with_master = tasks_of_three(1);
  with_master.job->host = "n1";
  with_master.job->host_by = "MASTER_ADDR";
  request = request_for("2");
  request.rendezvous.master_addr = {"n2", Source::kEnvironment, "PET_MASTER_ADDR"};
  EXPECT_TRUE(refusal_by(request, with_master).starts_with("'PET_MASTER_ADDR=n2', and 'MASTER_ADDR=n1'; "));
}

TEST(JobPlace, OfSeveralTasksOnAHostIsRefusedWhereNothingTellsWhichRankEachIs) {
  Allocation crowded = tasks_of_three(0);
  crowded.job->tasks_here = 2;
  crowded.job->tasks = 4;
  EXPECT_THAT(refusal_by(request_for(""), crowded),
              mentions({"2 tasks", "'mpirun --map-by ppr:1:node lrun --devices 2 …'", "'--standalone'"}));
  crowded.job->task = TaskPlace{0, 4, 0, 2, 0, 2, {2, 2}, crowded.job->starter};
  EXPECT_THAT(refusal_by(request_for(""), crowded), mentions({"4 launchers", "'--rdzv-endpoint here:29500'"}));
  crowded.job->host = "here";
  EXPECT_EQ(placed(request_for(""), crowded).rendezvous.task, crowded.job->task);
  crowded.job->task.reset();
  crowded.job->tasks = 2;
  EXPECT_THAT(refusal_by(request_for("8"), crowded), mentions({"2 tasks", "'lrun --devices 8 …'", "'--standalone'"}));
}

TEST(JobPlace, WithoutANumberOfNodesIsTakenOnlyWhereTheUserSaysOne) {
  Allocation pod{{cpu_node(16, "train-2")}, "Kubernetes indexed Job", "JOB_COMPLETION_INDEX"};
  pod.job = JobPlace{"train-0", "train-0.train", 0, 2};
  pod.job->knows_nodes = false;
  pod.job->replaces_nodes = true;
  EXPECT_EQ(placed(request_for("2"), pod), request_for("2")) << "many such jobs are of single pods";
  LaunchRequest request = request_for("2");
  request.num_nodes = {4, Source::kFlag, "--num_nodes"};
  const LaunchPlan plan = plan_in(pod, request);
  EXPECT_EQ(plan.num_nodes, 4);
  EXPECT_EQ(plan.rendezvous->node_rank, 2);
  EXPECT_EQ(plan.rendezvous->host, "train-0.train");
  EXPECT_EQ(plan.rendezvous->port, 29'500);
  EXPECT_GT(plan.rendezvous->replacement, Duration::zero()) << "a pod that ended is started again";
  EXPECT_EQ(plan_in(step_of_three(1), request_for("2")).rendezvous->replacement, Duration::zero());
}

TEST(JobPlace, OfSomeOfTheNodesLeavesTheirNumbersToTheUser) {
  Allocation worker{{cpu_node(16, "worker-0")}, "Kubernetes indexed Job", "JOB_COMPLETION_INDEX"};
  worker.job = JobPlace{"worker-0", "worker-0.train", 0, 0};
  worker.job->node_rank_by = "JOB_COMPLETION_INDEX";
  worker.job->knows_nodes = false;
  LaunchRequest request = request_for("2");
  request.num_nodes = {3, Source::kEnvironment, "PET_NNODES"};
  request.rendezvous.node_rank = {1, Source::kEnvironment, "PET_NODE_RANK"};
  EXPECT_TRUE(refusal_by(request, worker).starts_with("'PET_NODE_RANK=1', and node rank is 0 by JOB_COMPLETION_INDEX"))
      << "nobody says where node rank 0 is";
  Allocation with_master = worker;
  with_master.job->host = "master";
  with_master.job->host_by = "MASTER_ADDR";
  EXPECT_EQ(plan_in(with_master, request).rendezvous->node_rank, 1);
  request.rendezvous.master_addr = {"master", Source::kEnvironment, "PET_MASTER_ADDR"};
  request.master_port = {29'400, Source::kEnvironment, "PET_MASTER_PORT"};
  const LaunchPlan plan = plan_in(worker, request);
  EXPECT_EQ(plan.num_nodes, 3);
  EXPECT_EQ(plan.rendezvous->node_rank, 1);
  EXPECT_EQ(plan.rendezvous->host, "master");
  EXPECT_EQ(plan.rendezvous->port, 29'400);
  EXPECT_EQ(plan.run_name, "demo") << "the master is not of this Job and would not find its name";
  worker.job->node_rank = 2;
  EXPECT_TRUE(refusal_by(request, worker).starts_with("'PET_NODE_RANK=1', and node rank is 2 by JOB_COMPLETION_INDEX"))
      << "what comes behind a master has a later number";
}

TEST(JobPlace, OnHostsThatNobodyStartsLrunOnIsRefusedUnlessThisOneIsToBeAlone) {
  Allocation script{{cpu_node(16, "h1")}, "PBS", "PBS_NODEFILE"};
  script.listed_hosts = {"h1", "h2"};
  EXPECT_THAT(refusal_by(request_for("2"), script),
              mentions({"2 hosts", "'h1'", "'lrun --hostfile $PBS_NODEFILE …'", "'--num-nodes 1'"}));
  script.source = "LSF";
  script.reason = "LSB_MCPU_HOSTS";
  EXPECT_THAT(
      refusal_by(request_for("2"), script),
      mentions({"2 hosts", "'h1'", "'mpirun --map-by ppr:1:node lrun --rdzv-endpoint h1:29500 …'", "'--num-nodes 1'"}));
  LaunchRequest request = request_for("2");
  request.num_nodes = {1, Source::kFlag, "--num_nodes"};
  EXPECT_EQ(refusal_by(request, script), "none");
  request.num_nodes.value = 2;
  request.rendezvous.endpoint = {{"h1", 29'500}, Source::kFlag, "--rdzv-endpoint"};
  EXPECT_EQ(refusal_by(request, script), "none") << "somebody starts it on the others";
}

// A step of Slurm in which the user gives the endpoint, and nothing else.
TEST(JobPlaceWithEndpoint, KeepsTheNodesOfTheStep) {
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = endpoint_of("n1", 29'555);
  const LaunchPlan plan = plan_in(step_of_three(1), request);
  EXPECT_EQ(plan.world_size, 6);
  ASSERT_TRUE(plan.rendezvous);
  EXPECT_EQ(plan.rendezvous->host, "n1");
  EXPECT_EQ(plan.rendezvous->port, 29'555);
  EXPECT_EQ(plan.rendezvous->node_rank, 1);
  EXPECT_EQ(plan.rendezvous->max_nodes, 3);
  EXPECT_EQ(plan.rendezvous->replacement, Duration(0)) << "nobody else can come";
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 3;
  EXPECT_EQ(nodes_to_start(placed(request, script), script), 3) << "as without an endpoint";
}

TEST(JobPlaceWithEndpoint, IsOnTheFirstNode) {
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = endpoint_of("n3.cluster", 29'555);
  EXPECT_THAT(refusal_of([&] { (void)plan_in(step_of_three(0), request); }),
              mentions({"'--rdzv-endpoint'", "'n3.cluster'", "node rank 0, which is 'n1'"}));
  request.rendezvous.endpoint = endpoint_of("10.0.0.1", 29'555);
  EXPECT_TRUE(plan_in(step_of_three(0), request).rendezvous) << "an address may be that of the first";
  request.rendezvous.endpoint = endpoint_of("n3", 29'555);
  request.rendezvous.backend = backend_flag("c10d");
  EXPECT_TRUE(plan_in(step_of_three(0), request).rendezvous) << "they meet wherever the endpoint is";
}

TEST(JobPlaceWithEndpoint, OfSeveralNodesIsNotOnTheLoopbackInterface) {
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = endpoint_of("localhost", 29'555);
  for (const char* const backend : {"", "c10d"}) {
    if (*backend != '\0') request.rendezvous.backend = backend_flag(backend);
    EXPECT_THAT(refusal_of([&] { (void)plan_in(step_of_three(0), request); }),
                mentions({"'--rdzv-endpoint'", "'localhost'", "3 nodes", "'--standalone'"}));
  }
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 3;
  EXPECT_EQ(nodes_to_start(placed(request, script), script), 0) << "a script's first node, where it runs";
}

TEST(JobPlaceWithEndpoint, IsChangedWithTheOptionThatNamedIt) {
  EXPECT_EQ(plan_in(step_of_three(0), request_for("2")).rendezvous->port_option, "--master-port");
  LaunchRequest request = request_for("2");
  request.rendezvous.endpoint = endpoint_of("n1", 29'555);
  EXPECT_EQ(plan_in(step_of_three(0), request).rendezvous->port_option, "--rdzv-endpoint");
}

}  // namespace
}  // namespace lrun::launcher
