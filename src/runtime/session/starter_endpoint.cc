// In: the variables of srun, mpirun or mpiexec. Out: the address and port at which the tasks of the job meet, and the
// job's name. Called by World::from_environment().
#include "runtime/session/starter_endpoint.h"

#include <lrun/error.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/numeric_address.h"

namespace lrun::detail {
namespace {

std::string text_of(const World::Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string() : found->second;
}

/// The value of the step's variable, or of the job's if an old Slurm has no other.
std::string first_of(const World::Variables& variables, std::string_view of_step, std::string_view of_job) {
  const std::string text = text_of(variables, of_step);
  return text.empty() ? text_of(variables, of_job) : text;
}

/// As lrun does it: below the ports that the kernel gives to connections.
std::uint16_t port_for(std::string_view job) {
  constexpr unsigned kFirstPort = 15'000;
  constexpr unsigned kPorts = 17'000;  // to 31,999
  return static_cast<std::uint16_t>(kFirstPort + crc32c(job) % kPorts);
}

/// The name of the job for all its tasks. A process of this host cannot identify it for the tasks of other hosts.
std::string mpi_job(const World::Variables& variables, bool are_all_here) {
  const std::string job = text_of(variables, "PMIX_NAMESPACE");
  const std::string proxy = text_of(variables, kPmiProxyVariable);
  return job.empty() && are_all_here && !proxy.empty() ? "hydra-" + proxy : job;
}

[[noreturn]] void miss(const std::string& name, const std::string& why) {
  throw BadEnvironment("environment variable '" + name + "' is missing: " + why);
}

}  // namespace

StarterEndpoint slurm_endpoint(const World::Variables& variables) {
  StarterEndpoint endpoint;
  const std::string job = text_of(variables, "SLURM_JOB_ID");
  if (!job.empty()) endpoint.run_id = "slurm-" + job + "." + text_of(variables, "SLURM_STEP_ID");
  endpoint.address = without_brackets(text_of(variables, "MASTER_ADDR"));
  if (endpoint.address.empty() && variables.contains("SLURM_HET_SIZE")) {
    miss("MASTER_ADDR", "in a heterogeneous job Slurm's list of hosts does not begin with that of rank 0");
  }
  if (endpoint.address.empty()) {
    const std::string list = first_of(variables, "SLURM_STEP_NODELIST", "SLURM_NODELIST");
    endpoint.address = first_slurm_host(list);
    if (endpoint.address.empty())
      miss("MASTER_ADDR", "the step's list of hosts, '" + list + "', does not say the first");
  }
  if (!text_of(variables, "MASTER_PORT").empty()) return endpoint;
  if (endpoint.run_id.empty()) miss("MASTER_PORT", "without 'SLURM_JOB_ID' no port follows");
  endpoint.port = port_for(endpoint.run_id.substr(endpoint.run_id.find('-') + 1));
  return endpoint;
}

StarterEndpoint mpi_endpoint(const World::Variables& variables, const World& world) {
  StarterEndpoint endpoint;
  const bool are_all_here = world.local_world_size == world.world_size;
  const std::string job = mpi_job(variables, are_all_here);
  if (!job.empty()) endpoint.run_id = "mpi-" + job;
  endpoint.address = without_brackets(text_of(variables, "MASTER_ADDR"));
  if (endpoint.address.empty() && !are_all_here) {
    const std::string_view line = world.source == WorldSource::kPmi
                                      ? "mpiexec -ppn 1 -genv MASTER_ADDR HOST lrun …"
                                      : "mpirun --map-by ppr:1:node -x MASTER_ADDR=HOST lrun …";
    miss("MASTER_ADDR", "mpirun starts " + std::to_string(world.world_size) +
                            " tasks on several hosts and tells none where rank 0 is; start lrun once a host, '" +
                            std::string(line) + "', or give MASTER_ADDR and MASTER_PORT to all tasks");
  }
  if (endpoint.address.empty()) endpoint.address = "127.0.0.1";
  if (!text_of(variables, "MASTER_PORT").empty()) return endpoint;
  if (job.empty()) {
    miss("MASTER_PORT",
         "this mpirun gives its job no name that a port could follow from; give the same free one to "
         "all tasks, 'mpiexec -genv MASTER_PORT 29500 …', or use 'lrun -n " +
             std::to_string(world.local_world_size) + " …'");
  }
  endpoint.port = port_for(job);
  return endpoint;
}

std::string first_slurm_host(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    const bool is_range = list.front() == '[';
    const auto end = is_range ? list.find(']') : list.find_first_of("[,");
    std::string_view part = list.substr(0, end);
    if (is_range) {
      if (end == std::string_view::npos) return {};
      part = part.substr(1, part.find_first_of("-,") - 1);
      list.remove_prefix(1);
    }
    host += part;
    list.remove_prefix(std::min(end, list.size()));
  }
  return host;
}

}  // namespace lrun::detail
