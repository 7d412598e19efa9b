#include "cluster/mpi_job.h"

#include <gtest/gtest.h>

#include "cluster/detect.h"
#include "support/mentions.h"
#include "unit/cluster/manager_view.h"

namespace lrun::launcher {
namespace {

/// Task 1 of `mpirun --map-by ppr:1:node -np 3` of Open MPI 4.1.
FakeNode second_of_three() {
  return FakeNode({{"OMPI_COMM_WORLD_RANK", "1"},
                   {"OMPI_COMM_WORLD_SIZE", "3"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                   {"OMPI_COMM_WORLD_NODE_RANK", "0"},
                   {"OMPI_MCA_orte_num_nodes", "3"},
                   {"PMIX_NAMESPACE", "3407872001"}});
}

TEST(MpiJob, WithOneTaskANodeHasTheTasksRankAsTheNodes) {
  const auto job = second_of_three().job();
  ASSERT_TRUE(job);
  EXPECT_EQ(job->nodes, (Reported<int>{3, "OMPI_COMM_WORLD_SIZE"}));
  EXPECT_EQ(job->node_rank, (Reported<int>{1, "OMPI_COMM_WORLD_RANK"})) << "OMPI_COMM_WORLD_NODE_RANK is a local rank";
  EXPECT_FALSE(job->host.known()) << "mpirun tells nobody where rank 0 is";
  EXPECT_EQ(job->run_name, "3407872001");
}

TEST(MpiJob, MeetsWhereMasterAddrSaysAtAPortOfTheJob) {
  const auto job = second_of_three().with("MASTER_ADDR", "h1").job();
  EXPECT_EQ(job->host, (Reported<std::string>{"h1", "MASTER_ADDR"}));
  EXPECT_EQ(job->port, (Reported<int>{port_for("3407872001"), "PMIX_NAMESPACE"}));
  EXPECT_EQ(second_of_three().with("MASTER_ADDR", "[fd00::1]").job()->host.value, "fd00::1");
  const auto with_port = second_of_three().with("MASTER_ADDR", "h1").with("MASTER_PORT", "29511").job();
  EXPECT_EQ(with_port->port, (Reported<int>{29'511, "MASTER_PORT"}));
  const auto of_service = second_of_three().with("MASTER_ADDR", "h1").with("MASTER_PORT", "tcp://10.0.0.1:80").job();
  EXPECT_EQ(of_service->port.by, "PMIX_NAMESPACE") << "Kubernetes' variable of a service";
}

TEST(MpiJob, IsKnownOfMpichJsrunAndFluxToo) {
  EXPECT_EQ(text_of(FakeNode({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}}).job()),
            "MPICH: node 1 of 2 at ?:?");
  FakeNode jsrun({{"JSM_NAMESPACE_RANK", "1"},
                  {"JSM_NAMESPACE_SIZE", "2"},
                  {"JSM_NAMESPACE_LOCAL_SIZE", "1"},
                  {"LSB_JOBID", "4242"},
                  {"LSB_DJOB_RANKFILE", "/ranks"}});
  jsrun.with_file("/ranks", "login\nc1\nc1\nc2\n");
  EXPECT_EQ(text_of(jsrun.job()), "jsrun: node 1 of 2 at c1:" + std::to_string(port_for("4242")));
  const FakeNode flux({{"FLUX_TASK_RANK", "1"},
                       {"FLUX_JOB_SIZE", "2"},
                       {"FLUX_JOB_NNODES", "2"},
                       {"FLUX_JOB_ID", "f2Xy"},
                       {"PMI_RANK", "1"},
                       {"PMI_SIZE", "2"},
                       {"MASTER_ADDR", "n0"}});
  EXPECT_EQ(text_of(flux.job()), "Flux: node 1 of 2 at n0:" + std::to_string(port_for("f2Xy")));
}

/// Task 5 of `mpirun -np 8 -H h1:4,h2:4`.
FakeNode sixth_of_eight() {
  return second_of_three()
      .with("OMPI_COMM_WORLD_RANK", "5")
      .with("OMPI_COMM_WORLD_SIZE", "8")
      .with("OMPI_COMM_WORLD_LOCAL_RANK", "1")
      .with("OMPI_COMM_WORLD_LOCAL_SIZE", "4")
      .with("OMPI_MCA_orte_num_nodes", "2");
}

TEST(MpiJob, WithSeveralTasksOnAHostGivesEachThePlaceOfARank) {
  const auto job = sixth_of_eight().with("MASTER_ADDR", "h1").job();
  ASSERT_TRUE(job && job->task);
  EXPECT_EQ(*job->task, (TaskPlace{5, 8, 1, 4, 1, 2, {4, 4}, "mpirun --map-by ppr:{}:node"}));
  EXPECT_EQ(text_of(job), "Open MPI: node 1 of 2 at h1:" + std::to_string(port_for("3407872001")));
  EXPECT_FALSE(job->is_of_one());
  EXPECT_EQ(text_of(sixth_of_eight().job()), "Open MPI: node 1 of 2 at ?:" + std::to_string(port_for("3407872001")));
  const FakeNode flux({{"FLUX_TASK_RANK", "3"},
                       {"FLUX_TASK_LOCAL_ID", "1"},
                       {"FLUX_JOB_SIZE", "4"},
                       {"FLUX_JOB_NNODES", "2"},
                       {"FLUX_JOB_ID", "f2Xy"},
                       {"PMI_RANK", "3"},
                       {"PMI_SIZE", "4"}});
  EXPECT_EQ(flux.job()->task, (TaskPlace{3, 4, 1, 2, 1, 2, {2, 2}, "flux run --tasks-per-node={}"}));
}

TEST(MpiJob, OnSeveralHostsMeetsOnTheFirstOneOfTheScheduler) {
  FakeNode pbs = sixth_of_eight().with("PBS_NODEFILE", "/hosts").with_file("/hosts", "h1\nh1\nh2\nh2\n");
  EXPECT_EQ(pbs.job()->host, (Reported<std::string>{"h1", "PBS_NODEFILE"}));
  EXPECT_EQ(pbs.with("MASTER_ADDR", "h2").job()->host, (Reported<std::string>{"h2", "MASTER_ADDR"}));
  FakeNode slurm = second_of_three().with("SLURM_JOB_ID", "7").with("SLURM_JOB_NODELIST", "n[1-3]");
  EXPECT_EQ(slurm.job()->host, (Reported<std::string>{"n1", "SLURM_JOB_NODELIST"})) << "with a task a node, too";
  EXPECT_FALSE(slurm.with("SLURM_JOB_NODELIST", "login").job()->host.known()) << "a job of one node";
}

TEST(MpiJob, WithAllTasksOnOneHostMeetsThere) {
  const auto jsrun = FakeNode({{"JSM_NAMESPACE_RANK", "1"},
                               {"JSM_NAMESPACE_SIZE", "2"},
                               {"JSM_NAMESPACE_LOCAL_RANK", "1"},
                               {"JSM_NAMESPACE_LOCAL_SIZE", "2"},
                               {"LSB_JOBID", "4242"},
                               {"LSB_DJOB_RANKFILE", "/ranks"}})
                         .with_file("/ranks", "login\nc1\nc1\n")
                         .job();
  EXPECT_EQ(text_of(jsrun), "jsrun: node 0 of 1 at 127.0.0.1:" + std::to_string(port_for("4242")));
  EXPECT_FALSE(jsrun->is_of_one()) << "two launchers have to meet";
  FakeNode mpich({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(text_of(mpich.job()), "MPICH: node 0 of 1 at 127.0.0.1:?");
  const auto named = mpich.with_pmi_proxy(77).job();
  EXPECT_EQ(text_of(named), "MPICH: node 0 of 1 at 127.0.0.1:" + std::to_string(port_for("hydra-77")));
  EXPECT_EQ(named->run_name, "hydra-77");
  EXPECT_EQ(mpich.with("MASTER_ADDR", "127.0.0.1").job()->host, (Reported<std::string>{"127.0.0.1", "MASTER_ADDR"}));
  EXPECT_EQ(mpich.with("MASTER_ADDR", "here").job()->host.value, "here");
}

TEST(MpiJob, WithSeveralTasksWhosePlacesAreUnknownTellsHowMany) {
  const auto is_placed = [](const FakeNode& node) { return node.job()->task.has_value(); };
  const auto uneven = sixth_of_eight().with("OMPI_COMM_WORLD_SIZE", "6").job();
  EXPECT_EQ(uneven->tasks_here, 4);
  EXPECT_EQ(uneven->tasks, 6);
  EXPECT_FALSE(uneven->task) << "the other host has two";
  EXPECT_FALSE(uneven->nodes.known());
  EXPECT_TRUE(is_placed(sixth_of_eight()));
  EXPECT_FALSE(is_placed(sixth_of_eight().with("OMPI_COMM_WORLD_LOCAL_RANK", "2"))) << "mpirun --map-by node";
  EXPECT_FALSE(is_placed(sixth_of_eight().without("OMPI_COMM_WORLD_LOCAL_RANK")));
  const auto elsewhere = second_of_three().with("OMPI_MCA_orte_num_nodes", "2").job();
  EXPECT_EQ(elsewhere->tasks_here, 2) << "three tasks on two nodes, of which this one has one";
  EXPECT_FALSE(elsewhere->task);
  const auto uncounted = FakeNode({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).job();
  EXPECT_EQ(uncounted->tasks_here, 2) << "nothing says that they are on several hosts";
  EXPECT_FALSE(uncounted->task);
}

TEST(MpiJob, LeavesToItsFirstTaskWhatIsWrongInTheLineOfAll) {
  const auto is_later = [](const FakeNode& node) { return is_later_task(node.view().environment); };
  EXPECT_TRUE(is_later(second_of_three()));
  EXPECT_FALSE(is_later(second_of_three().with("OMPI_COMM_WORLD_RANK", "0")));
  EXPECT_FALSE(is_later(second_of_three().with("OMPI_NUM_APP_CTX", "2"))) << "'mpirun A : B' has two lines";
  EXPECT_FALSE(is_later(second_of_three().with("LRUN_RUN_ID", "x"))) << "a run of a worker";
  const FakeNode first_below_task_of_slurm({{"SLURM_JOB_ID", "12"},
                                            {"SLURM_STEP_ID", "0"},
                                            {"SLURM_PROCID", "1"},
                                            {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                            {"PMI_RANK", "0"},
                                            {"PMI_SIZE", "2"},
                                            {"MPI_LOCALNRANKS", "2"}});
  EXPECT_FALSE(is_later(first_below_task_of_slurm)) << "mpirun has started it";
}

TEST(MpiJob, HasATaskThatMaySpeakForItsHost) {
  const auto is_first = [](const FakeNode& node) { return is_first_mpi_task_of_host(node.view().environment); };
  EXPECT_TRUE(is_first(second_of_three()));
  EXPECT_FALSE(is_first(sixth_of_eight()));
  EXPECT_TRUE(is_first(sixth_of_eight().with("OMPI_COMM_WORLD_LOCAL_RANK", "0")));
  EXPECT_FALSE(is_first(FakeNode({{"HOME", "/"}}))) << "no task";
}

/// The refusal of detect_allocation().
std::string refusal_of(const FakeNode& node, const Questions& questions) {
  try {
    (void)detect_allocation(questions, node.view().environment);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(DetectAllocation, RefusesAMasterThatIsNotOnNodeRankZero) {
  FakeNode first = second_of_three();
  first.with("OMPI_COMM_WORLD_RANK", "0").with("MASTER_ADDR", "192.0.2.1");
  const Questions questions{.other_managers = true};
  EXPECT_EQ(refusal_of(first, questions).find("'MASTER_ADDR=192.0.2.1' is another host than '"), 0U);
  EXPECT_EQ(refusal_of(first, {.names = {"192.0.2.2"}, .other_managers = true}), "none") << "the user names the place";
  EXPECT_EQ(refusal_of(first.with("OMPI_COMM_WORLD_RANK", "1"), questions), "none") << "that is another node";
  first.with("OMPI_COMM_WORLD_RANK", "0");
  EXPECT_EQ(refusal_of(first.with("MASTER_ADDR", "127.0.0.2"), questions), "none");
  EXPECT_EQ(refusal_of(first.with("MASTER_ADDR", "no-such-host.invalid"), questions), "none") << "may come to be known";
  first.without("MASTER_ADDR").with("SLURM_JOB_NODELIST", "192.0.2.1,192.0.2.2");
  EXPECT_EQ(refusal_of(first, questions).find("SLURM_JOB_NODELIST begins with '192.0.2.1', but Open MPI has started"),
            0U);
}

FakeNode only_task() { return second_of_three().with("OMPI_COMM_WORLD_SIZE", "1").with("OMPI_COMM_WORLD_RANK", "0"); }

TEST(MpiJob, OfASingleTaskIsKnownAsThat) {
  EXPECT_EQ(text_of(only_task().job()), "Open MPI: node 0 of 1 at ?:" + std::to_string(port_for("3407872001")));
  EXPECT_TRUE(only_task().job()->is_of_one()) << "on one of three nodes";
  EXPECT_FALSE(second_of_three().job()->is_of_one());
}

TEST(DetectAllocation, OfASingleTaskLooksAtNoListsAndNoBatchScript) {
  constexpr const char* kLists[][2] = {{"LSB_MCPU_HOSTS", "batch1 1 c1 42"}, {"SLURM_JOB_NODELIST", "n[1-2]"}};
  for (const auto& [name, hosts] : kLists) {
    FakeNode node = only_task();
    node.with(name, hosts).with("SLURM_JOB_ID", "12");
    const Questions questions{.manager = true, .other_managers = true};
    const Allocation alone = detect_allocation(questions, node.view().environment);
    EXPECT_EQ(alone.nodes.size(), 1U) << name;
    EXPECT_EQ(alone.nodes_to_start, 0) << name;
    EXPECT_EQ(alone.listed_hosts, std::vector<std::string>()) << name;
    EXPECT_EQ(alone.job, std::nullopt) << name;
    EXPECT_EQ(alone.reason, "OMPI_COMM_WORLD_SIZE names no other node") << name;
    const Allocation plain = detect_allocation(questions, node.without("OMPI_COMM_WORLD_SIZE").view().environment);
    EXPECT_GT(plain.listed_hosts.size() + static_cast<std::size_t>(plain.nodes_to_start), 1U) << name;
  }
}

TEST(MpiJob, IsAbsentForAWorkerOrATaskOfSlurm) {
  for (const char* const outer : {"LRUN_RUN_ID", "TORCHELASTIC_RUN_ID"}) {
    EXPECT_EQ(text_of(second_of_three().with(outer, "x").job()), "none") << outer;
  }
  const FakeNode by_pmi2({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "1.0"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(text_of(by_pmi2.job()), "none") << "the step's variables say more";
  const FakeNode by_pmix({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.pmix.1.0"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(text_of(by_pmix.job()), "none");
}

TEST(MpiJob, ThatCannotBeReadIsRefused) {
  EXPECT_EQ(second_of_three().with("OMPI_COMM_WORLD_SIZE", "many").refusal(),
            "'OMPI_COMM_WORLD_SIZE=many' is not a number from 1 to 65536");
  EXPECT_EQ(second_of_three().with("OMPI_COMM_WORLD_SIZE", "2000000000").refusal(),
            "'OMPI_COMM_WORLD_SIZE=2000000000' is not a number from 1 to 65536");
  EXPECT_THAT(second_of_three().with("OMPI_COMM_WORLD_RANK", "3").refusal(),
              mentions({"3 by OMPI_COMM_WORLD_RANK", "3 nodes", "OMPI_COMM_WORLD_SIZE"}));
}

TEST(MpiJob, IsAbsentWithEmptyVariables) {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}) {
    EXPECT_EQ(text_of(second_of_three().with(name, "").job()), "none") << name;
  }
  EXPECT_EQ(text_of(second_of_three().with("OMPI_MCA_orte_num_nodes", "").with("PMIX_NAMESPACE", "").job()),
            "Open MPI: node 1 of 3 at ?:?");
}

}  // namespace
}  // namespace lrun::launcher
