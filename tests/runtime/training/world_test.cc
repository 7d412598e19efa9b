#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/world.h>

namespace lrun {
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

TEST(World, IsAloneInASlurmTaskWithoutAnAddressAndInABatchScript) {
  EXPECT_EQ(World::from_variables(without(kSlurm, "MASTER_PORT")).world_size, 1);
  EXPECT_EQ(World::from_variables(without(kSlurm, "SLURM_STEP_ID")).world_size, 1);
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
}  // namespace lrun
