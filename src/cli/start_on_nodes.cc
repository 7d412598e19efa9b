#include "cli/start_on_nodes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/user_error.h"
#include "cli/diagnostics.h"
#include "cli/meet.h"
#include "cluster/slurm.h"
#include "process/program_path.h"
#include "remote/srun.h"
#include "remote/srun_watch.h"
#include "store/listening_socket.h"

namespace lrun {
namespace {

/// What the job's script asked for its own tasks, and srun would read as asked for each launcher: of four GPUs, one for
/// each of four tasks, the one launcher of a node would see one.
constexpr const char* kOptionsOfTasks[] = {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK",   "SLURM_GPUS_PER_TASK",
                                           "SLURM_TRES_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_TRES",
                                           "SLURM_GPU_BIND",      "SLURM_TRES_BIND",      "SLURM_CPU_BIND",
                                           "SLURM_MEM_PER_CPU",   "SLURM_MEM_PER_GPU",    "SLURM_EXACT"};

[[noreturn]] void become_srun(const std::vector<std::string>& command, const Environment& environment) {
  const ProgramPath srun = find_program(command.front(), environment.get("PATH").value_or(""));
  if (srun.path.empty()) {
    throw UserError("srun, which starts lrun on the other nodes of this Slurm job, is not on PATH",
                    "'--num_nodes 1' uses this node alone");
  }
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(srun.path.c_str(), argv.data());
  throw std::system_error(errno, std::generic_category(), "cannot execute '" + srun.path + "'");
}

}  // namespace

void start_on_nodes(int nodes, const std::vector<std::string>& argv, const LaunchRequest& request,
                    const Allocation& allocation, const Environment& environment) {
  std::vector<std::string> launcher{std::filesystem::read_symlink("/proc/self/exe").string()};
  launcher.insert(launcher.end(), argv.begin() + 1, argv.end());
  // srun passes its environment on, over the same channel as all else of the step.
  ::setenv("LRUN_JOB_SECRET", job_secret_or_new(environment).c_str(), 1);
  const Fd watched = open_socket_for_srun();
  ::setenv(kSrunPort, std::to_string(port_of_socket(watched.get())).c_str(), 1);
  const std::string gpus = gpus_per_node(environment);
  for (const char* const name : kOptionsOfTasks) ::unsetenv(name);
  say(Severity::kNote, fmt::format("srun starts lrun on {} nodes of {}", nodes, allocation.source));
  become_srun(srun_command(nodes, launcher, request.standard_input, gpus), environment);
}

}  // namespace lrun
