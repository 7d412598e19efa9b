#include "cluster/slurm.h"

#include <gtest/gtest.h>

#include <string>

#include "base/user_error.h"
#include "cluster/detect.h"

namespace lrun {
namespace {

/// Task 1 of `srun -N3 --ntasks-per-node=1`.
Environment second_of_three() {
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

TEST(SlurmStep, IsReadFromTheStepAndNotFromTheJob) {
  EXPECT_EQ(slurm_step(second_of_three()), (SlurmStep{"12", "0", 1, {"n1", "n2", "n3"}}));
}

TEST(SlurmStep, IsNoneInABatchScriptWhichHasRankZeroAndTheJobsTasks) {
  Environment script = second_of_three();
  script.unset("SLURM_STEP_ID");
  EXPECT_EQ(slurm_step(script), std::nullopt);
  EXPECT_EQ(nodes_of_batch_script(script), 4);
  script.set("SLURM_STEP_ID", "");
  EXPECT_EQ(slurm_step(script), std::nullopt);
  EXPECT_EQ(nodes_of_batch_script(script), 4) << "empty: not told";
  EXPECT_EQ(nodes_of_batch_script(second_of_three()), 0);
}

TEST(SlurmStep, OfOneTaskIsALaunchOnThisHost) {
  Environment alone = second_of_three();
  alone.set("SLURM_STEP_TASKS_PER_NODE", "1");
  alone.set("SLURM_STEP_NODELIST", "n2");
  EXPECT_EQ(slurm_step(alone), std::nullopt);
}

TEST(SlurmStep, IsNotThatOfAWorkerWhichStartsAnotherLauncher) {
  for (const char* const outer : {"LRUN_RUN_ID", "TORCHELASTIC_RUN_ID"}) {
    Environment worker = second_of_three();
    worker.set(outer, "x");
    EXPECT_EQ(slurm_step(worker), std::nullopt) << outer;
  }
}

TEST(SlurmStep, OfSeveralTasksANodeIsRefusedWithTheLineToType) {
  Environment crowded = second_of_three();
  crowded.set("SLURM_STEP_TASKS_PER_NODE", "1,4(x2)");
  EXPECT_EQ(refusal_of(crowded),
            "srun starts 4 tasks a node, and each is an lrun that would start all workers of its node");
}

TEST(SlurmStep, ThatContradictsItselfIsRefused) {
  Environment short_list = second_of_three();
  short_list.set("SLURM_STEP_NODELIST", "n[1-2]");
  EXPECT_EQ(refusal_of(short_list), "the step's nodes 'n[1-2]' and tasks '1(x3)' do not say which node this is");
  Environment heterogeneous = second_of_three();
  heterogeneous.set("SLURM_HET_SIZE", "2");
  EXPECT_NE(refusal_of(heterogeneous), "none");
  Environment unreadable = second_of_three();
  unreadable.set("SLURM_NODEID", "3");
  EXPECT_EQ(refusal_of(unreadable), "'SLURM_NODEID=3' is not a number from 0 to 2");
  unreadable.set("SLURM_STEP_TASKS_PER_NODE", "many");
  EXPECT_EQ(refusal_of(unreadable), "'SLURM_STEP_TASKS_PER_NODE=many' cannot be read");
}

TEST(SlurmStep, MeetsOnItsFirstHostAtAPortOfItsOwn) {
  const SlurmStep step = *slurm_step(second_of_three());
  const JobPlace place = meeting_of(step);
  EXPECT_EQ(place.host, "n1");
  EXPECT_EQ(place.node_rank, 1);
  EXPECT_EQ(place.run_name, "slurm-12.0");
  SlurmStep next = step;
  next.step = "1";
  EXPECT_NE(meeting_of(next).port, place.port);
  for (int job = 1; job < 20'000; job += 77) {
    next.job = std::to_string(job);
    EXPECT_GE(meeting_of(next).port, 15'000);
    EXPECT_LT(meeting_of(next).port, 32'000) << "connections get the ports from 32768 on";
  }
}

TEST(DetectAllocation, IsTheStepWithThisHostFirst) {
  const Allocation allocation = detect_allocation({.manager = true}, second_of_three());
  ASSERT_EQ(allocation.nodes.size(), 3U);
  EXPECT_EQ(allocation.nodes.front().name, detect_allocation({}, Environment()).nodes.front().name);
  EXPECT_EQ(allocation.nodes[1].name, "n1");
  EXPECT_EQ(allocation.nodes[2].name, "n3");
  EXPECT_EQ(allocation.source, "Slurm step 12.0");
  EXPECT_EQ(detect_allocation({.manager = false}, second_of_three()).job, std::nullopt) << "not asked";
}

}  // namespace
}  // namespace lrun
