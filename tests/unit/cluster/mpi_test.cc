#include "cluster/mpi.h"

#include <gtest/gtest.h>

#include <string>

#include "base/user_error.h"
#include "cluster/detect.h"

namespace lrun {
namespace {

/// What is refused, and the hint.
std::string refusal_of(const Environment& environment) {
  try {
    refuse_mpi_tasks(environment);
  } catch (const UserError& error) {
    return std::string(error.what()) + "; " + error.hint();
  }
  return "none";
}

Environment open_mpi(const std::string& all, const std::string& on_this_host) {
  return Environment({{"OMPI_COMM_WORLD_SIZE", all}, {"OMPI_COMM_WORLD_LOCAL_SIZE", on_this_host}});
}

Environment pmi(const std::string& all) {
  Environment environment;
  environment.set("PMI_SIZE", all);
  return environment;
}

TEST(MpiTasks, OnOneHostAreRefusedWithTheLineToType) {
  const std::string refusal =
      "mpirun starts lrun 2 times, and each would be a run of its own; write 'lrun -n 2 …' without mpirun, or give "
      "'--standalone' to every lrun";
  EXPECT_EQ(refusal_of(open_mpi("2", "2")), refusal);
  EXPECT_EQ(refusal_of(Environment({{"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}})), refusal);
  EXPECT_EQ(refusal_of(pmi("2")), refusal);
}

TEST(MpiTasks, OnSeveralHostsHaveToBeToldWhereToMeet) {
  EXPECT_EQ(refusal_of(open_mpi("3", "1")),
            "mpirun starts lrun on 3 hosts, and nothing says where they meet; write 'mpirun … lrun --num_nodes 3 "
            "--rdzv-endpoint HOST:29500 …' with one of the hosts, or give '--standalone' to every lrun that is to stay "
            "alone");
  EXPECT_EQ(refusal_of(open_mpi("4", "2")),
            "mpirun starts lrun 2 times on this host, and each would be a run of its own; let mpirun start one lrun a "
            "host, with '--num_nodes' and '--rdzv-endpoint HOST:29500'");
}

TEST(MpiTasks, ThatAreAloneOrWorkersOrSlurmsAreNotRefused) {
  EXPECT_EQ(refusal_of(Environment()), "none");
  EXPECT_EQ(refusal_of(open_mpi("1", "1")), "none");
  EXPECT_EQ(refusal_of(open_mpi("many", "")), "none");
  Environment worker = open_mpi("2", "2");
  worker.set("TORCHELASTIC_RUN_ID", "x");
  EXPECT_EQ(refusal_of(worker), "none");
  EXPECT_EQ(refusal_of(Environment({{"PMI_SIZE", "2"}, {"SLURM_STEP_ID", "0"}})), "none") << "of srun --mpi=pmi2";
  EXPECT_NE(refusal_of(Environment({{"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}, {"SLURM_STEP_ID", "0"}})), "none")
      << "hydra below srun";
}

TEST(MpiTasks, AreSeenOnlyWhereTheManagerIsAsked) {
  EXPECT_THROW((void)detect_allocation({.manager = true}, open_mpi("2", "2")), UserError);
  EXPECT_NO_THROW((void)detect_allocation({.manager = false}, open_mpi("2", "2")));
}

}  // namespace
}  // namespace lrun
