#include "remote/srun.h"

namespace lrun::launcher {

std::vector<std::string> srun_command(const SrunStep& step, const std::vector<std::string>& launcher,
                                      bool reads_input) {
  const std::string count = std::to_string(step.nodes);
  std::vector<std::string> command{"srun",
                                   "--nodes=" + count,
                                   "--ntasks=" + count,
                                   "--ntasks-per-node=1",
                                   "--overlap",
                                   "--cpu-bind=none",
                                   "--kill-on-bad-exit=0",
                                   "--disable-status",
                                   reads_input ? "--input=0" : "--input=none"};
  if (!step.gpus_per_node.empty()) command.push_back("--gpus-per-node=" + step.gpus_per_node);
  // Otherwise srun ends with the first node, or, where the cluster has a WaitTime, that long after the first task.
  if (step.outlives_nodes) command.insert(command.end(), {"--no-kill", "--wait=0"});
  command.insert(command.end(), launcher.begin(), launcher.end());
  return command;
}

}  // namespace lrun::launcher
