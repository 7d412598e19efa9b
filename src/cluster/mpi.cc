#include "cluster/mpi.h"

#include <fmt/format.h>

#include <string>

#include "base/user_error.h"
#include "base/whole_number.h"
#include "cluster/outer_launcher.h"

namespace lrun {
namespace {

/// What one of several tasks is told about all of them.
struct MpiTasks {
  int all = 0;
  int on_this_host = 0;  ///< 0: the starter does not say
};

/// 0 where there is no such number.
int number_of(const Environment& environment, const char* name) {
  return whole_number<int>(environment.get(name).value_or("")).value_or(0);
}

/// Slurm's own PMI says less than the step's variables; hydra's tasks below srun have MPI_LOCALNRANKS, too.
MpiTasks tasks_of(const Environment& environment) {
  if (environment.has("OMPI_COMM_WORLD_SIZE")) {
    return {number_of(environment, "OMPI_COMM_WORLD_SIZE"), number_of(environment, "OMPI_COMM_WORLD_LOCAL_SIZE")};
  }
  const int on_this_host = number_of(environment, "MPI_LOCALNRANKS");
  if (on_this_host == 0 && environment.has("SLURM_STEP_ID")) return {};
  return {number_of(environment, "PMI_SIZE"), on_this_host};
}

}  // namespace

void refuse_mpi_tasks(const Environment& environment) {
  const MpiTasks tasks = tasks_of(environment);
  if (tasks.all <= 1 || is_worker(environment)) return;
  if (tasks.on_this_host == 1) {
    throw UserError(fmt::format("mpirun starts lrun on {} hosts, and nothing says where they meet", tasks.all),
                    fmt::format("write 'mpirun … lrun --num_nodes {} --rdzv-endpoint HOST:29500 …' with one of the "
                                "hosts, or give '--standalone' to every lrun that is to stay alone",
                                tasks.all));
  }
  const bool one_host = tasks.on_this_host == tasks.all || tasks.on_this_host == 0;
  throw UserError(
      fmt::format("mpirun starts lrun {} times{}, and each would be a run of its own",
                  one_host ? tasks.all : tasks.on_this_host, one_host ? "" : " on this host"),
      one_host ? fmt::format("write 'lrun -n {} …' without mpirun, or give '--standalone' to every lrun", tasks.all)
               : "let mpirun start one lrun a host, with '--num_nodes' and '--rdzv-endpoint HOST:29500'");
}

}  // namespace lrun
