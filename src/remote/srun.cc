#include "remote/srun.h"

namespace lrun {

std::vector<std::string> srun_command(int nodes, const std::vector<std::string>& launcher, bool reads_input,
                                      const std::string& gpus_per_node) {
  const std::string count = std::to_string(nodes);
  std::vector<std::string> command{"srun",
                                   "--nodes=" + count,
                                   "--ntasks=" + count,
                                   "--ntasks-per-node=1",
                                   "--overlap",
                                   "--cpu-bind=none",
                                   "--kill-on-bad-exit=0",
                                   "--disable-status",
                                   reads_input ? "--input=0" : "--input=none"};
  if (!gpus_per_node.empty()) command.push_back("--gpus-per-node=" + gpus_per_node);
  command.insert(command.end(), launcher.begin(), launcher.end());
  return command;
}

}  // namespace lrun
