#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/world.h>

#include <optional>
#include <string>

namespace lrun::detail {
namespace {

using Variables = World::Variables;

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"GROUP_RANK", "1"},
                             {"GROUP_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "job7"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_MAX_RESTARTS", "3"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables without(Variables variables, std::string_view name) {
  variables.erase(variables.find(name));
  return variables;
}

std::string complaint(const Variables& variables) {
  try {
    World::from_variables(variables);
    return "accepted";
  } catch (const BadEnvironment& error) {
    return error.what();
  }
}

TEST(World, IsAloneWithoutAnEnvironment) {
  EXPECT_EQ(World::from_variables({}), World());
  EXPECT_EQ(World::from_variables({{"LOCAL_RANK", "3"}, {"MASTER_ADDR", ""}}).world_size, 1);
}

TEST(World, TakesNoNoticeOfAForeignMasterWhenAlone) {
  const Variables service = {{"MASTER_PORT", "tcp://10.0.0.1:80"}, {"MASTER_ADDR", "master"}};
  EXPECT_EQ(complaint(service), "accepted");
  EXPECT_EQ(World::from_variables(service), World());
  EXPECT_EQ(complaint(with(service, {{"RANK", "0"}, {"WORLD_SIZE", "2"}})),
            "environment variable 'MASTER_PORT' is 'tcp://10.0.0.1:80', not a number");
}

TEST(World, ReadsTorchrunsVariables) {
  const World world = World::from_variables(kTorchrun);
  EXPECT_EQ(world.rank, 5);
  EXPECT_EQ(world.world_size, 8);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_world_size, 4);
  EXPECT_EQ(world.node_rank, 1);
  EXPECT_EQ(world.nodes, 2);
  EXPECT_EQ(world.master_address, "node0");
  EXPECT_EQ(world.master_port, 29500);
  EXPECT_TRUE(world.uses_agent_store);
  EXPECT_EQ(world.run_id, "job7");
  EXPECT_EQ(world.restart_count, 2);
  EXPECT_EQ(world.max_restarts, 3);
  EXPECT_EQ(world.source, WorldSource::kTorchrun);
  EXPECT_EQ(world.seed, std::nullopt);
}

TEST(World, ReadsLrunsVariables) {
  const World world = World::from_variables(with(kTorchrun, {{"LRUN_RUN_ID", "run1"},
                                                             {"LRUN_STRATEGY", "ddp"},
                                                             {"LRUN_DEVICES", "cuda:0,cuda:1"},
                                                             {"LRUN_PROCESS_GROUP_BACKEND", "shm"},
                                                             {"LRUN_SEED", "18446744073709551615"},
                                                             {"LRUN_RESUME", "1"}}));
  EXPECT_EQ(world.source, WorldSource::kLrun);
  EXPECT_EQ(world.run_id, "run1");
  EXPECT_EQ(world.strategy, "ddp");
  EXPECT_EQ(world.backend, "shm");
  EXPECT_EQ(world.devices, (std::vector<std::string>{"cuda:0", "cuda:1"}));
  EXPECT_EQ(world.seed, 18446744073709551615U);
  EXPECT_TRUE(world.resume);
  EXPECT_EQ(world.resume_path, "");
}

TEST(World, ReadsFromWhereToGoOn) {
  EXPECT_FALSE(World::from_variables({}).resume);
  EXPECT_FALSE(World::from_variables({{"LRUN_RESUME", ""}}).resume);
  EXPECT_FALSE(World::from_variables({{"LRUN_RESUME", "0"}}).resume);
  const World world = World::from_variables({{"LRUN_RESUME", "/run/checkpoints"}});
  EXPECT_TRUE(world.resume);
  EXPECT_EQ(world.resume_path, "/run/checkpoints");
}

TEST(World, NeedsRankAndWorldSizeOnly) {
  const World world = World::from_variables({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_world_size, 2);
  EXPECT_EQ(world.nodes, 1);
}

TEST(World, FollowsFromLocalRankUnderTheSeedsLauncher) {
  for (int local_rank = 0; local_rank < 3; ++local_rank) {
    const World world = World::from_variables({{"MASTER_ADDR", "localhost"},
                                               {"MASTER_PORT", "12910"},
                                               {"WORLD_SIZE", "3"},
                                               {"NODE_RANK", "0"},
                                               {"LOCAL_RANK", std::to_string(local_rank)}});
    EXPECT_EQ(world.rank, local_rank);
    EXPECT_EQ(world.world_size, 3);
  }
  const World second_node =
      World::from_variables({{"WORLD_SIZE", "8"}, {"NODE_RANK", "1"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "4"}});
  EXPECT_EQ(second_node.rank, 6);
  EXPECT_EQ(second_node.nodes, 2);
  EXPECT_EQ(complaint({{"WORLD_SIZE", "8"}, {"NODE_RANK", "1"}, {"LOCAL_RANK", "2"}}),
            "environment variable 'RANK' is missing, and without 'LOCAL_WORLD_SIZE' it does not follow from node rank "
            "and local rank");
}

const Variables kSlurm = {{"SLURM_STEP_ID", "0"},
                          {"SLURM_PROCID", "3"},
                          {"SLURM_NTASKS", "4"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_NNODES", "2"},
                          {"SLURM_STEP_TASKS_PER_NODE", "3,1"},
                          {"MASTER_ADDR", "node0"},
                          {"MASTER_PORT", "29500"}};

TEST(World, ReadsATaskOfASlurmStep) {
  const World world = World::from_variables(kSlurm);
  EXPECT_EQ(world.source, WorldSource::kSlurm);
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.world_size, 4);
  EXPECT_EQ(world.local_rank, 0);
  EXPECT_EQ(world.local_world_size, 1) << "of tasks 3,1 on the second node";
  EXPECT_EQ(world.node_rank, 1);
  EXPECT_EQ(world.nodes, 2);
  const World sixth = World::from_variables(with(kSlurm, {{"SLURM_PROCID", "6"},
                                                          {"SLURM_NTASKS", "7"},
                                                          {"SLURM_NNODES", "4"},
                                                          {"SLURM_NODEID", "3"},
                                                          {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}}));
  EXPECT_EQ(sixth.local_world_size, 1);
}

TEST(World, OfASlurmStepMeetsOnItsFirstHostAtThePortOfJobAndStep) {
  Variables step = without(without(kSlurm, "MASTER_ADDR"), "MASTER_PORT");
  EXPECT_EQ(complaint(step),
            "environment variable 'MASTER_ADDR' is missing: the step's list of hosts, '', does not say the first");
  step["SLURM_STEP_NODELIST"] = "rack[07-09,11]n[2-3],b";
  EXPECT_EQ(complaint(step), "environment variable 'MASTER_PORT' is missing: without 'SLURM_JOB_ID' no port follows");
  step["SLURM_JOB_ID"] = "12";
  const World world = World::from_variables(step);
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.master_address, "rack07n2");
  EXPECT_GE(world.master_port, 15'000);
  EXPECT_LT(world.master_port, 32'000);
  EXPECT_EQ(world.run_id, "slurm-12.0");
  EXPECT_FALSE(world.uses_agent_store) << "rank 0 hosts the store";
  EXPECT_NE(World::from_variables(with(step, {{"SLURM_STEP_ID", "1"}})).master_port, world.master_port);
  EXPECT_EQ(World::from_variables(with(step, {{"MASTER_ADDR", "mine"}})).master_address, "mine");
  EXPECT_EQ(World::from_variables(with(step, {{"MASTER_ADDR", "[fd00::1]"}})).master_address, "fd00::1");
  EXPECT_EQ(World::from_variables(with(step, {{"MASTER_PORT", "29500"}})).master_port, 29500);
  EXPECT_EQ(
      complaint(with(step, {{"SLURM_HET_SIZE", "2"}})),
      "environment variable 'MASTER_ADDR' is missing: in a heterogeneous job Slurm's list of hosts does not begin "
      "with that of rank 0");
}

TEST(World, IsAloneInABatchScriptAndInAStepOfOneTask) {
  EXPECT_EQ(World::from_variables(without(kSlurm, "SLURM_STEP_ID")), World());
  EXPECT_EQ(World::from_variables(with(kSlurm, {{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}})), World());
  EXPECT_EQ(World::from_variables(with(kSlurm, {{"SLURM_STEP_ID", ""}})), World());
}

TEST(World, IsAloneInTheShellOfAnInteractiveSalloc) {
  const Variables shell = {{"SLURM_JOB_ID", "12"},        {"SLURM_STEP_ID", "4294967290"},
                           {"SLURM_PROCID", "0"},         {"SLURM_LOCALID", "0"},
                           {"SLURM_NODEID", "0"},         {"SLURM_STEP_NUM_TASKS", "1"},
                           {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "1"},
                           {"SLURM_STEP_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "8"},
                           {"SLURM_NTASKS", "8"}};
  EXPECT_EQ(World::from_variables(shell), World()) << "salloc -n 8";
  EXPECT_EQ(World::from_variables(without(shell, "SLURM_STEP_NUM_TASKS")), World()) << "known by its step alone";
  EXPECT_EQ(World::from_variables(with(shell, {{"SLURM_STEP_ID", "0"}})), World()) << "srun -n 1 in it";
}

TEST(World, OfASlurmStepHasTheStepsTasksAndNotTheJobs) {
  const World world = World::from_variables(with(
      kSlurm,
      {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "4"}}));
  EXPECT_EQ(world.world_size, 4);
  EXPECT_EQ(world.nodes, 2);
  EXPECT_EQ(world.rank, 3);
}

TEST(World, BelievesALauncherBeforeTheScheduler) {
  const World world = World::from_variables(with(kSlurm, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}));
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.world_size, 2);
}

TEST(World, RefusesASlurmStepThatContradictsWorldSize) {
  EXPECT_EQ(complaint(with(kSlurm, {{"WORLD_SIZE", "8"}})),
            "environment variable 'WORLD_SIZE' is 8, but 'SLURM_NTASKS' is 4");
}

TEST(World, ReadsAnOpenMpiTask) {
  const World world = World::from_variables({{"OMPI_COMM_WORLD_RANK", "5"},
                                             {"OMPI_COMM_WORLD_SIZE", "8"},
                                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                             {"MASTER_ADDR", "node0"},
                                             {"MASTER_PORT", "29500"}});
  EXPECT_EQ(world.source, WorldSource::kOpenMpi);
  EXPECT_EQ(world.rank, 5);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.nodes, 2);
}

TEST(World, OfMpirunOnOneHostMeetsThereAtAPortOfTheJob) {
  const Variables task = {{"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "2"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                          {"PMIX_NAMESPACE", "1210974209"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_PROCID", "0"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_NTASKS", "7"}};
  const World world = World::from_variables(task);
  EXPECT_EQ(world.source, WorldSource::kOpenMpi) << "mpirun's daemons are the step's tasks";
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.master_address, "127.0.0.1");
  EXPECT_GE(world.master_port, 15'000);
  EXPECT_EQ(world.run_id, "mpi-1210974209");
  EXPECT_EQ(World::from_variables(with(task, {{"MASTER_ADDR", "h1"}})).master_address, "h1");
}

TEST(World, OfMpirunOnSeveralHostsNeedsAnAddress) {
  const Variables task = {{"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                          {"PMIX_NAMESPACE", "1210974209"}};
  EXPECT_EQ(
      complaint(task),
      "environment variable 'MASTER_ADDR' is missing: mpirun starts 4 tasks on several hosts and tells none where "
      "rank 0 is; start lrun once a host, 'mpirun --map-by ppr:1:node -x MASTER_ADDR=HOST lrun …', or give "
      "MASTER_ADDR and MASTER_PORT to all tasks");
  EXPECT_EQ(complaint(with(task, {{"MASTER_ADDR", "h1"}})), "accepted");
}

TEST(World, ReadsATaskOfMpichWhichHasNoNameOfItsJob) {
  const Variables task = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_EQ(complaint(task),
            "environment variable 'MASTER_PORT' is missing: this mpirun gives its job no name that a port could follow "
            "from; give the same free one to all tasks, 'mpiexec -genv MASTER_PORT 29500 …', or use 'lrun -n 2 …'");
  const World world = World::from_variables(with(task, {{"MASTER_PORT", "29500"}}));
  EXPECT_EQ(world.source, WorldSource::kPmi);
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.master_address, "127.0.0.1");
  EXPECT_EQ(World::from_variables({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), World()) << "PMI of something else";
}

TEST(World, KnowsTheJobOfMpichByTheProcessThatStartedItsTasksHere) {
  const Variables task = {{"PMI_RANK", "1"},
                          {"PMI_SIZE", "2"},
                          {"MPI_LOCALRANKID", "1"},
                          {"MPI_LOCALNRANKS", "2"},
                          {"LRUN_PMI_PROXY", "4711"}};
  const World world = World::from_variables(task);
  EXPECT_EQ(world.run_id, "mpi-hydra-4711");
  EXPECT_EQ(world.master_address, "127.0.0.1");
  EXPECT_GE(world.master_port, 15'000);
  EXPECT_NE(World::from_variables(with(task, {{"LRUN_PMI_PROXY", "4712"}})).master_port, world.master_port);
  const Variables two_hosts = with(task, {{"PMI_SIZE", "4"}, {"MASTER_ADDR", "h1"}});
  EXPECT_TRUE(complaint(two_hosts).starts_with("environment variable 'MASTER_PORT' is missing")) << "each host has one";
  EXPECT_EQ(
      complaint(without(two_hosts, "MASTER_ADDR")),
      "environment variable 'MASTER_ADDR' is missing: mpirun starts 4 tasks on several hosts and tells none where "
      "rank 0 is; start lrun once a host, 'mpiexec -ppn 1 -genv MASTER_ADDR HOST lrun …', or give MASTER_ADDR and "
      "MASTER_PORT to all tasks");
}

TEST(World, NamesTheVariableThatIsWrong) {
  EXPECT_EQ(complaint({{"RANK", "0"}}), "environment variable 'RANK' is set without 'WORLD_SIZE'");
  EXPECT_EQ(complaint({{"WORLD_SIZE", "2"}}), "environment variable 'WORLD_SIZE' is set without 'RANK'");
  EXPECT_EQ(complaint({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "environment variable 'RANK' is 2, and 'WORLD_SIZE' is 2");
  EXPECT_EQ(complaint(with(kTorchrun, {{"RANK", "one"}})), "environment variable 'RANK' is 'one', not a number");
  EXPECT_EQ(complaint(with(kTorchrun, {{"RANK", "-1"}})), "environment variable 'RANK' is -1, less than 0");
  EXPECT_EQ(complaint(with(kTorchrun, {{"WORLD_SIZE", "99999999999"}})),
            "environment variable 'WORLD_SIZE' is '99999999999', which is too large");
  EXPECT_EQ(complaint(with(kTorchrun, {{"WORLD_SIZE", ""}})), "environment variable 'WORLD_SIZE' is '', not a number");
  EXPECT_EQ(complaint(with(kTorchrun, {{"LOCAL_RANK", "4"}})),
            "environment variable 'LOCAL_RANK' is 4, and 'LOCAL_WORLD_SIZE' is 4");
  EXPECT_EQ(complaint(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}})),
            "environment variable 'LOCAL_WORLD_SIZE' is 9, and 'WORLD_SIZE' is 8");
  EXPECT_EQ(complaint(with(kTorchrun, {{"GROUP_RANK", "2"}})),
            "environment variable 'GROUP_RANK' is 2, and 'GROUP_WORLD_SIZE' is 2");
  EXPECT_EQ(complaint(with(kTorchrun, {{"MASTER_PORT", "70000"}})),
            "environment variable 'MASTER_PORT' is '70000', which is too large");
  EXPECT_EQ(complaint(with(kTorchrun, {{"MASTER_PORT", "0"}})), "environment variable 'MASTER_PORT' is 0, not a port");
  EXPECT_EQ(complaint(with(kTorchrun, {{"LRUN_SEED", "x"}})), "environment variable 'LRUN_SEED' is 'x', not a number");
}

}  // namespace
}  // namespace lrun::detail
