#include "multihost/start_through_srun.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/nearest.h"
#include "base/shell_words.h"
#include "base/user_error.h"
#include "cluster/slurm.h"
#include "multihost/srun_step.h"
#include "process/program_path.h"
#include "remote/srun.h"
#include "remote/srun_watch.h"
#include "rendezvous/handshake.h"
#include "run/join_job.h"
#include "store/listening_socket.h"

namespace lrun::launcher {
namespace {

/// Options that the job's script set for its own tasks, and that srun would apply to each launcher: with four GPUs, one
/// for each of four tasks, the launcher of a node would see one.
constexpr const char* kOptionsOfTasks[] = {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK",   "SLURM_GPUS_PER_TASK",
                                           "SLURM_TRES_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_TRES",
                                           "SLURM_GPU_BIND",      "SLURM_TRES_BIND",      "SLURM_CPU_BIND",
                                           "SLURM_MEM_PER_CPU",   "SLURM_MEM_PER_GPU",    "SLURM_EXACT"};

std::string path_of_srun(const Environment& environment) {
  const ProgramPath srun = find_program("srun", environment.get("PATH").value_or(""));
  if (!srun.path.empty()) return srun.path;
  throw UserError("srun, which starts lrun on the nodes of this Slurm job, is not on PATH",
                  "'--standalone' uses this host alone");
}

/// The launchers get the variables of this process, unless the job was submitted with --export.
bool passes_environment(const Environment& environment) {
  const std::string passed = environment.get("SLURM_EXPORT_ENV").value_or("");
  return passed.empty() || passed == "ALL";
}

/// The run can go on when a node is lost.
bool outlives_nodes(const LaunchRequest& request) {
  return request.spares.value > 0 || (request.min_nodes > 0 && request.min_nodes < request.num_nodes.value);
}

}  // namespace

int start_through_srun(int nodes, const std::vector<std::string>& argv, const LaunchRequest& request,
                       const Allocation& allocation, const Environment& environment, MessageSink& sink) {
  const std::string srun = path_of_srun(environment);
  std::vector<std::string> launcher{std::filesystem::read_symlink("/proc/self/exe").string()};
  launcher.insert(launcher.end(), argv.begin() + 1, argv.end());
  // srun passes its environment on, over the same channel as all else of the step.
  ::setenv("LRUN_JOB_SECRET", job_secret_or_new(environment).c_str(), 1);
  const Fd watched = open_socket_for_srun();
  ::setenv(kSrunPort, std::to_string(port_of_socket(watched.get())).c_str(), 1);
  ::setenv(kSrunFolder, std::filesystem::current_path().c_str(), 1);
  if (const int tasks = tasks_asked_per_node(environment); tasks > 0) {
    ::setenv(kTasksAsked, std::to_string(tasks).c_str(), 1);
  }
  const SrunStep step{nodes, gpus_per_node(environment), outlives_nodes(request)};
  for (const char* const name : kOptionsOfTasks) ::unsetenv(name);
  sink.note(fmt::format("srun starts lrun on {} of {}", counted(nodes, "node"), allocation.source));
  const std::vector<std::string> command = srun_command(step, launcher, request.standard_input);
  if (request.verbosity > 1) sink.note("srun is started with: " + shell_line(command));
  const WatchedStep watched_step{.token = random_secret(),
                                 .launcher = launcher.front(),
                                 .needs_all = !step.outlives_nodes && passes_environment(environment)};
  ::setenv("LRUN_OUTCOME_TOKEN", watched_step.token.c_str(), 1);
  return watch_srun_step(srun, command, watched_step, sink);
}

}  // namespace lrun::launcher
