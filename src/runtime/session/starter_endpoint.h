#pragma once

#include <lrun/world.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lrun::detail {

/// The endpoint of the tasks of srun or mpirun when no launcher gives one: the same for all tasks of a job.
struct StarterEndpoint {
  std::string address;     ///< MASTER_ADDR, else derived from the starter's variables
  std::uint16_t port = 0;  ///< MASTER_PORT (then 0 here), else derived from the job's name
  std::string run_id;      ///< the job's name, 'slurm-12.0'; empty: the starter gives none

  bool operator==(const StarterEndpoint&) const = default;
};

/// The tasks of a Slurm step: on the first of its hosts, at a port of job and step.
/// \throws BadEnvironment  the variables are not enough: a heterogeneous job, or one without a list of hosts.
StarterEndpoint slurm_endpoint(const World::Variables& variables);

/// The pid of pmi_proxy(), among the variables of a process that has one.
inline constexpr std::string_view kPmiProxyVariable = "LRUN_PMI_PROXY";

/// The tasks of mpirun: on this host if all are, at a port of the job, whose name its starter gives (PMIx), or the
/// process that started the tasks of this host. \param world  has ranks already
/// \throws BadEnvironment  they are on several hosts and MASTER_ADDR is missing, or the job has no name and MASTER_PORT
/// is.
StarterEndpoint mpi_endpoint(const World::Variables& variables, const World& world);

/// The first host of a list in Slurm's format, 'rack[1-2]n[08-10],b'; empty if it is malformed.
std::string first_slurm_host(std::string_view list);

}  // namespace lrun::detail
