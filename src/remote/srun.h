#pragma once

#include <string>
#include <vector>

namespace lrun {

/// The command that starts `launcher`, a command line of lrun, as the one task of each of `nodes` nodes of the Slurm
/// job that this process is in. The step shares what the job has with the script, a launcher may use all of its node's
/// CPUs, and no launcher ends because another did: they tell each other. A Ctrl-C goes to the launchers, which stop the
/// run; srun alone would tell of its tasks first, and kill them at a second one. \param reads_input  the first task
/// gets this process's standard input; else nobody does. \param gpus_per_node  to ask for; empty: as the job has them
std::vector<std::string> srun_command(int nodes, const std::vector<std::string>& launcher, bool reads_input,
                                      const std::string& gpus_per_node);

}  // namespace lrun
