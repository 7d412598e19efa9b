#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// The variable that tells the launchers of a step the folder in which lrun was typed. Slurm starts a task in /tmp
/// where its node does not have that folder.
inline constexpr const char* kSrunFolder = "LRUN_SRUN_FOLDER";

/// The step that srun is to make.
struct SrunStep {
  int nodes = 1;
  std::string gpus_per_node;    ///< to ask for; empty: as the job has them
  bool outlives_nodes = false;  ///< it goes on when Slurm gives up one of its nodes, and after the end of a task

  bool operator==(const SrunStep&) const = default;
};

/// The command that starts `launcher`, a command line of lrun, as the one task of each of `step.nodes` nodes of the
/// Slurm job that this process is in. The step shares what the job has with the script, a launcher may use all of its
/// node's CPUs, and no launcher ends because another did: they notify each other. A Ctrl-C goes to the launchers, which
/// stop the run; without --disable-status srun would print the state of its tasks first, and kill them at the second.
/// \param reads_input  the first task gets this process's standard input; otherwise no task does.
std::vector<std::string> srun_command(const SrunStep& step, const std::vector<std::string>& launcher, bool reads_input);

}  // namespace lrun::launcher
