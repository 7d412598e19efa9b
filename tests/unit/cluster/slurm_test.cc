#include "cluster/slurm.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/user_error.h"
#include "cluster/detect.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

/// Task 1 of `srun -N3 --ntasks-per-node=1`.
Environment second_task_of_three() {
  return Environment({{"SLURM_JOB_ID", "12"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_PROCID", "1"},
                      {"SLURM_NODEID", "1"},
                      {"SLURM_STEP_NODELIST", "n[1-3]"},
                      {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                      {"SLURM_JOB_NODELIST", "n[1-4]"},
                      {"SLURM_TASKS_PER_NODE", "2(x4)"}});
}

std::string refusal_of(const Environment& environment) {
  try {
    (void)slurm_step(environment);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(SlurmJob, IsNamedAsSlurmNamesIt) {
  Environment environment = second_task_of_three();
  const auto names = [&] { return slurm_job_names(environment); };
  EXPECT_EQ(names(), std::vector<std::string>{"12.0"});
  environment.set("SLURM_ARRAY_JOB_ID", "9");
  environment.set("SLURM_ARRAY_TASK_ID", "3");
  EXPECT_EQ(names(), (std::vector<std::string>{"9_3.0", "12.0"}));
  environment.unset("SLURM_STEP_ID");
  EXPECT_EQ(names(), (std::vector<std::string>{"9_3", "12"})) << "a batch script is no step";
  environment.unset("SLURM_ARRAY_TASK_ID");
  environment.set("SLURM_STEP_ID", "4294967290");
  EXPECT_EQ(names(), std::vector<std::string>{"12"}) << "nor is the shell of salloc";
  environment.set("SLURM_JOB_ID", "1\n2");
  EXPECT_TRUE(names().empty());
}

TEST(SlurmStep, IsReadFromTheStepAndNotFromTheJob) {
  EXPECT_EQ(slurm_step(second_task_of_three()), (SlurmStep{"12", "0", 1, {"n1", "n2", "n3"}, {1, 1, 1}, 1, 0}));
}

TEST(SlurmStep, LeavesToItsFirstTaskWhatIsWrongInTheLineOfAll) {
  Environment task = second_task_of_three();
  EXPECT_TRUE(is_later_task(task));
  task.set("SLURM_PROCID", "0");
  EXPECT_FALSE(is_later_task(task));
  Environment in_shell_of_salloc = second_task_of_three();
  in_shell_of_salloc.set("SLURM_STEP_ID", "4294967290");
  EXPECT_FALSE(is_later_task(in_shell_of_salloc)) << "nobody else says it";
  Environment component = second_task_of_three();
  component.set("SLURM_HET_SIZE", "2");
  EXPECT_FALSE(is_later_task(component)) << "'srun A : B' has two lines";
}

TEST(SlurmStep, IsAbsentInABatchScriptWhichHasRankZeroAndTheJobsTasks) {
  Environment script = second_task_of_three();
  script.unset("SLURM_STEP_ID");
  EXPECT_EQ(slurm_step(script), std::nullopt);
  EXPECT_EQ(nodes_of_batch_script(script, "n1"), (BatchNodes{4, true}));
  script.set("SLURM_STEP_ID", "");
  EXPECT_EQ(slurm_step(script), std::nullopt);
  EXPECT_EQ(nodes_of_batch_script(script, "n1").count, 4) << "empty: not told";
  EXPECT_EQ(nodes_of_batch_script(second_task_of_three(), "n1"), BatchNodes());
  script.set("SLURM_JOB_NODELIST", "n[1-");
  try {
    (void)nodes_of_batch_script(script, "n1");
    ADD_FAILURE() << "a job of several nodes was taken for one of this node";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "'SLURM_JOB_NODELIST=n[1-' cannot be read");
  }
}

TEST(SlurmStep, IsAbsentInTheShellOfSallocWhichMayBeAStepOfItsOwn) {
  Environment shell = second_task_of_three();
  shell.set("SLURM_STEP_ID", "4294967290");
  shell.set("SLURM_STEP_TASKS_PER_NODE", "1");
  shell.set("SLURM_STEP_NODELIST", "n1");
  EXPECT_EQ(slurm_step(shell), std::nullopt);
  EXPECT_EQ(nodes_of_batch_script(shell, "n1").count, 4);
  EXPECT_EQ(tasks_of_step(shell), 0);
}

TEST(SlurmStep, OfOneTaskIsALaunchOnThisHost) {
  Environment alone = second_task_of_three();
  alone.set("SLURM_STEP_TASKS_PER_NODE", "1");
  alone.set("SLURM_STEP_NODELIST", "n2");
  EXPECT_EQ(slurm_step(alone), std::nullopt);
}

TEST(SlurmStep, IsNotThatOfAWorkerWhichStartsAnotherLauncher) {
  for (const char* const outer : {"LRUN_RUN_ID", "TORCHELASTIC_RUN_ID"}) {
    Environment worker = second_task_of_three();
    worker.set(outer, "x");
    EXPECT_EQ(slurm_step(worker), std::nullopt) << outer;
  }
}

/// Task 4 of `srun -N3 -n5 -m cyclic`, whose rank follows from nothing else.
Environment fourth_of_five() {
  Environment task = second_task_of_three();
  task.set("SLURM_STEP_TASKS_PER_NODE", "3,1(x2)");
  task.set("SLURM_PROCID", "4");
  task.set("SLURM_NODEID", "0");
  task.set("SLURM_LOCALID", "2");
  return task;
}

TEST(SlurmStep, OfSeveralTasksANodeHasALauncherARank) {
  const SlurmStep step = *slurm_step(fourth_of_five());
  EXPECT_EQ(step, (SlurmStep{"12", "0", 0, {"n1", "n2", "n3"}, {3, 1, 1}, 4, 2}));
  EXPECT_TRUE(step.has_several_a_node());
  EXPECT_FALSE(slurm_step(second_task_of_three())->has_several_a_node());
  EXPECT_EQ(job_place_of(step).task, (TaskPlace{4, 5, 2, 3, 0, 3, {3, 1, 1}}));
  EXPECT_TRUE(job_place_of(step).hosts.empty()) << "ranks are counted, not nodes";
  EXPECT_EQ(job_place_of(*slurm_step(second_task_of_three())).task, std::nullopt);
  EXPECT_EQ(job_place_of(*slurm_step(second_task_of_three())).hosts, (std::vector<std::string>{"n1", "n2", "n3"}));
}

TEST(SlurmStep, OfSeveralTasksOnOneNodeMeetsOnThisMachineAlone) {
  Environment task = fourth_of_five();
  task.set("SLURM_STEP_TASKS_PER_NODE", "5");
  task.set("SLURM_STEP_NODELIST", "n2");
  task.set("SLURM_LOCALID", "4");
  EXPECT_EQ(job_place_of(*slurm_step(task)).host, "127.0.0.1");
  EXPECT_EQ(job_place_of(*slurm_step(task)).task->nodes, 1);
}

TEST(SlurmStep, RefusesAPlaceThatIsNotInIt) {
  for (const auto& [name, value, most] :
       {std::tuple{"SLURM_PROCID", "5", "4"}, {"SLURM_LOCALID", "3", "2"}, {"SLURM_LOCALID", "", "2"}}) {
    Environment wrong = fourth_of_five();
    wrong.set(name, value);
    EXPECT_EQ(refusal_of(wrong), std::string("'") + name + "=" + value + "' is not a number from 0 to " + most);
  }
}

/// Task 1 of `srun --het-group=0-1`, of a job whose first component is one task on n3.
Environment second_of_components() {
  Environment task = second_task_of_three();
  task.set("SLURM_HET_SIZE", "2");
  task.set("SLURM_JOB_NODELIST_HET_GROUP_0", "n3");
  task.set("SLURM_JOB_NODELIST_HET_GROUP_1", "n[1-2]");
  task.set("SLURM_STEP_TASKS_PER_NODE", "2(x2),1");
  task.set("SLURM_LOCALID", "0");
  return task;
}

TEST(SlurmStep, OfAHeterogeneousJobHasItsNodesInTheOrderOfItsComponents) {
  const SlurmStep step = *slurm_step(second_of_components());
  EXPECT_EQ(step.hosts, (std::vector<std::string>{"n3", "n1", "n2"}));
  EXPECT_EQ(step.tasks, (std::vector<int>{1, 2, 2})) << "Slurm's own lists are sorted by name";
  EXPECT_EQ(job_place_of(step).host, "n3");
  Environment only_one = second_of_components();
  only_one.set("SLURM_STEP_NODELIST", "n[1-2]");
  only_one.set("SLURM_STEP_TASKS_PER_NODE", "1(x2)");
  EXPECT_THAT(refusal_of(only_one), mentions({"'n[1-2]'", "'1(x2)'"}));
  Environment unknown = second_of_components();
  unknown.unset("SLURM_JOB_NODELIST_HET_GROUP_1");
  EXPECT_NE(refusal_of(unknown), "none");
}

/// As recorded in task 1 of `srun -n1 -w h3 A : -N2 -n4 B`.
TEST(SlurmStep, OfComponentsThatSrunItselfMadeHasThemUnderAnOldName) {
  Environment task = second_task_of_three();
  task.set("SLURM_HET_SIZE", "2");
  task.set("SLURM_STEP_NODELIST", "h[1-3]");
  task.set("SLURM_JOB_NODELIST_PACK_GROUP_0", "h3");
  task.set("SLURM_JOB_NODELIST_PACK_GROUP_1", "h[1-2]");
  task.set("SLURM_STEP_TASKS_PER_NODE", "3,1(x2)");
  task.set("SLURM_LOCALID", "0");
  const SlurmStep step = *slurm_step(task);
  EXPECT_EQ(step.hosts, (std::vector<std::string>{"h3", "h1", "h2"}));
  EXPECT_EQ(step.tasks, (std::vector<int>{1, 3, 1}));
  EXPECT_EQ(job_place_of(step).host, "h3");
}

/// As recorded in the tasks of `srun -N1 lrun : -N1 lrun` without an allocation.
TEST(SlurmStep, OfTwoComponentsOfOneTaskIsARunOfTwoNodes) {
  Environment task({{"SLURM_HET_SIZE", "2"},
                    {"SLURM_PACK_SIZE", "2"},
                    {"SLURM_JOB_ID", "52"},
                    {"SLURM_JOB_ID_PACK_GROUP_0", "52"},
                    {"SLURM_JOB_ID_PACK_GROUP_1", "53"},
                    {"SLURM_JOB_NODELIST", "h[1-2]"},
                    {"SLURM_JOB_NODELIST_PACK_GROUP_0", "h1"},
                    {"SLURM_JOB_NODELIST_PACK_GROUP_1", "h2"},
                    {"SLURM_LOCALID", "0"},
                    {"SLURM_NODELIST", "h[1-2]"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_STEP_NODELIST", "h[1-2]"},
                    {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                    {"SLURM_TASKS_PER_NODE", "1(x2)"}});
  for (const int rank : {0, 1}) {
    task.set("SLURM_NODEID", std::to_string(rank));
    task.set("SLURM_PROCID", std::to_string(rank));
    EXPECT_EQ(slurm_step(task), (SlurmStep{"52", "0", rank, {"h1", "h2"}, {1, 1}, rank, 0}));
  }
}

TEST(SlurmStep, IsAskedForInTheBatchScriptOfAHeterogeneousJob) {
  Environment script = second_of_components();
  script.unset("SLURM_STEP_ID");
  try {
    (void)nodes_of_batch_script(script, "n1");
    ADD_FAILURE() << "the first component was taken for all";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), mentions({"2 components"}));
    EXPECT_THAT(error.hint(), mentions({"'srun --het-group=0-1 lrun …'", "'--standalone'"}));
  }
}

TEST(SlurmStep, IsCountedAlsoWhereUsersNameTheRendezvous) {
  EXPECT_EQ(tasks_of_step(fourth_of_five()), 5);
  EXPECT_EQ(tasks_of_step(Environment()), 0);
  Environment unreadable = fourth_of_five();
  unreadable.set("SLURM_STEP_TASKS_PER_NODE", "many");
  EXPECT_EQ(tasks_of_step(unreadable), 0) << "it is not needed there";
  Environment worker = fourth_of_five();
  worker.set("LRUN_RUN_ID", "x");
  EXPECT_EQ(tasks_of_step(worker), 0);
}

TEST(SlurmShare, IsWhatTheNodeGivesToTheJob) {
  Environment step = second_task_of_three();
  EXPECT_EQ(share_of_node(step), (SlurmShare{0, 0}));
  step.set("SLURM_GPUS_ON_NODE", "4");
  step.set("SLURM_CPUS_ON_NODE", "16");
  EXPECT_EQ(share_of_node(step), (SlurmShare{4, 16}));
  step.set("SLURM_GPUS_ON_NODE", "-1");
  EXPECT_EQ(share_of_node(step).gpus, 0);
  step.set("LRUN_RUN_ID", "x");
  EXPECT_EQ(share_of_node(step), (SlurmShare{0, 0}));
}

TEST(SlurmStep, ThatContradictsItselfIsRefused) {
  Environment short_list = second_task_of_three();
  short_list.set("SLURM_STEP_NODELIST", "n[1-2]");
  EXPECT_THAT(refusal_of(short_list), mentions({"'n[1-2]'", "'1(x3)'"}));
  Environment unreadable = second_task_of_three();
  unreadable.set("SLURM_NODEID", "3");
  EXPECT_EQ(refusal_of(unreadable), "'SLURM_NODEID=3' is not a number from 0 to 2");
  unreadable.set("SLURM_STEP_TASKS_PER_NODE", "many");
  EXPECT_EQ(refusal_of(unreadable), "'SLURM_STEP_TASKS_PER_NODE=many' cannot be read");
}

TEST(SlurmStep, MeetsOnItsFirstHostAtAPortOfItsOwn) {
  const SlurmStep step = *slurm_step(second_task_of_three());
  const JobPlace place = job_place_of(step);
  EXPECT_EQ(place.host, "n1");
  EXPECT_EQ(place.node_rank, 1);
  EXPECT_EQ(place.run_name, "slurm-12.0");
  EXPECT_TRUE(place.shares_screen) << "srun shows what all tasks print";
  SlurmStep next = step;
  next.step = "1";
  EXPECT_NE(job_place_of(next).port, place.port);
  for (int job = 1; job < 20'000; job += 77) {
    next.job = std::to_string(job);
    EXPECT_GE(job_place_of(next).port, 15'000);
    EXPECT_LT(job_place_of(next).port, 32'000) << "connections get the ports from 32768 on";
  }
}

TEST(BatchNodes, HaveThisHostUnlessSallocWasTypedOnALoginNode) {
  Environment shell({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_NODELIST", "n2"}});
  EXPECT_EQ(nodes_of_batch_script(shell, "login"), (BatchNodes{1, false}));
  EXPECT_EQ(nodes_of_batch_script(shell, "n2.cluster"), (BatchNodes{1, true}));
  shell.set("SLURMD_NODENAME", "n2");
  EXPECT_EQ(nodes_of_batch_script(shell, "machine7"), (BatchNodes{1, true}))
      << "Slurm may have a name of its own for it";
  shell.set("SLURMD_NODENAME", "n1");
  EXPECT_EQ(nodes_of_batch_script(shell, "n1"), (BatchNodes{1, false})) << "salloc inside of another job";
  EXPECT_TRUE(nodes_of_batch_script(Environment({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_NODELIST", "localhost"}}), "here")
                  .has_this_host);
}

TEST(SlurmTasks, AreThoseOfTheBatchScriptAndOfTheLaunchersThatItStarts) {
  Environment script = second_task_of_three();
  script.unset("SLURM_STEP_ID");
  EXPECT_EQ(tasks_asked_per_node(script), 0) << "SLURM_TASKS_PER_NODE is there also where nobody asked";
  script.set("SLURM_NTASKS_PER_NODE", "4");
  EXPECT_EQ(tasks_asked_per_node(script), 4);
  Environment step = second_task_of_three();
  step.set("SLURM_NTASKS_PER_NODE", "4");
  EXPECT_EQ(tasks_asked_per_node(step), 0) << "each of them is a launcher";
  step.set(kTasksAsked, "4");
  EXPECT_EQ(tasks_asked_per_node(step), 4);
  step.set("LRUN_RUN_ID", "x");
  EXPECT_EQ(tasks_asked_per_node(step), 0);
  script.set("SLURM_NTASKS_PER_NODE", "-1");
  EXPECT_EQ(tasks_asked_per_node(script), 0);
}

TEST(SlurmTasks, InAllAreThoseOfABatchScriptThatAsksForNonePerNode) {
  Environment script({{"SLURM_JOB_ID", "12"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(tasks_asked_in_all(script), 4);
  script.set("SLURM_NTASKS_PER_NODE", "4");
  EXPECT_EQ(tasks_asked_in_all(script), 0) << "lrun starts as many workers";
  Environment step = second_task_of_three();
  step.set("SLURM_NTASKS", "4");
  EXPECT_EQ(tasks_asked_in_all(step), 0);
  script.unset("SLURM_JOB_ID");
  script.unset("SLURM_NTASKS_PER_NODE");
  EXPECT_EQ(tasks_asked_in_all(script), 0);
}

TEST(SlurmGpus, OfTasksAreAskedForNodeByNode) {
  Environment script({{"SLURM_GPUS_PER_TASK", "2"}, {"SLURM_TASKS_PER_NODE", "4(x3)"}});
  EXPECT_EQ(gpus_per_node(script), "8");
  script.set("SLURM_GPUS_PER_TASK", "a100:1");
  EXPECT_EQ(gpus_per_node(script), "a100:4");
  for (const char* const other : {"", "a100:", "x", "0", "-1"}) {
    script.set("SLURM_GPUS_PER_TASK", other);
    EXPECT_EQ(gpus_per_node(script), "") << other;
  }
  EXPECT_EQ(gpus_per_node(Environment()), "");
  script.set("SLURM_GPUS_PER_TASK", "1");
  script.set("SLURM_TASKS_PER_NODE", "3,1(x2)");
  try {
    (void)gpus_per_node(script);
    ADD_FAILURE() << "one number was given for unequal nodes";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "'SLURM_GPUS_PER_TASK=1' of 5 tasks gives the nodes different numbers of GPUs");
    EXPECT_THAT(error.hint(), mentions({"'srun lrun …'", "'--gpus-per-node'"}));
  }
}

TEST(DetectAllocation, IsTheStepWithThisHostFirst) {
  const Allocation allocation = detect_allocation({.manager = true}, second_task_of_three());
  ASSERT_EQ(allocation.nodes.size(), 3U);
  EXPECT_EQ(allocation.nodes.front().name, detect_allocation({}, Environment()).nodes.front().name);
  EXPECT_EQ(allocation.nodes[1].name, "n1");
  EXPECT_EQ(allocation.nodes[2].name, "n3");
  EXPECT_EQ(allocation.source, "Slurm step 12.0");
  EXPECT_EQ(allocation.reason, "SLURM_STEP_ID, SLURM_STEP_NODELIST");
  EXPECT_EQ(detect_allocation({.manager = false}, second_task_of_three()).job, std::nullopt) << "not asked";
}

/// \return its source, or the refusal.
std::string source_of(const Environment& environment) {
  try {
    return detect_allocation({.manager = true, .other_managers = true}, environment).source;
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(DetectAllocation, RefusesAnotherManagersWordsThatContradictTheStep) {
  Environment task = second_task_of_three();
  task.set("SM_HOSTS", R"(["algo-1","algo-2"])");
  task.set("SM_CURRENT_HOST", "algo-2");
  EXPECT_THAT(source_of(task), mentions({"2 by SM_HOSTS and SM_CURRENT_HOST", "3 by SLURM_STEP_NODELIST"}));
  task.set("SM_HOSTS", R"(["algo-1","algo-2","algo-3"])");
  EXPECT_EQ(source_of(task), "Slurm step 12.0") << "they agree";
  task.set("SM_CURRENT_HOST", "algo-3");
  EXPECT_THAT(source_of(task), mentions({"2 by SM_HOSTS and SM_CURRENT_HOST", "1 by SLURM_NODEID"}));
}

TEST(DetectAllocation, IsTheStepThatWasStartedFromAPod) {
  Environment task = second_task_of_three();
  task.set("JOB_COMPLETION_INDEX", "0");
  EXPECT_EQ(source_of(task), "Slurm step 12.0") << "all tasks inherit it";
}

TEST(DetectAllocation, IsMpirunsInsideOfAStep) {
  Environment task = second_task_of_three();
  task.set("OMPI_COMM_WORLD_RANK", "0");
  task.set("OMPI_COMM_WORLD_SIZE", "2");
  task.set("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  EXPECT_EQ(source_of(task), "Open MPI");
}

}  // namespace
}  // namespace lrun::launcher
