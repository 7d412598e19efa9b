#include "remote/srun.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/user_error.h"
#include "process/program_path.h"

namespace lrun {

std::vector<std::string> srun_command(int nodes, const std::vector<std::string>& launcher, bool reads_input) {
  const std::string count = std::to_string(nodes);
  std::vector<std::string> command{
      "srun",      "--nodes=" + count, "--ntasks=" + count,    "--ntasks-per-node=1",
      "--overlap", "--cpu-bind=none",  "--kill-on-bad-exit=0", reads_input ? "--input=0" : "--input=none"};
  command.insert(command.end(), launcher.begin(), launcher.end());
  return command;
}

void become_srun(const std::vector<std::string>& command, const Environment& environment) {
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

}  // namespace lrun
