#include "cluster/slurm.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/user_error.h"
#include "base/whole_number.h"
#include "cluster/managed_job.h"
#include "cluster/outer_launcher.h"
#include "cluster/slurm_lists.h"

namespace lrun {
namespace {

constexpr const char* kSwitchedOff = "or give '--standalone' to every lrun that is to stay alone";

/// 'SLURM_NODEID=x' is not a number from 0 to `most`.
int number_of(const Environment& environment, const char* name, int most) {
  const std::string text = environment.get(name).value_or("");
  const std::optional<int> number = whole_number<int>(text);
  if (number && *number >= 0 && *number <= most) return *number;
  throw UserError(fmt::format("'{}={}' is not a number from 0 to {}", name, text, most), kSwitchedOff);
}

/// The value of the step's variable, or of the job's where an old Slurm has no other.
std::string first_of(const Environment& environment, const char* of_step, const char* of_job) {
  return environment.get(of_step).value_or(environment.get(of_job).value_or(""));
}

[[noreturn]] void refuse_several_tasks(const std::vector<int>& tasks) {
  const int most = *std::max_element(tasks.begin(), tasks.end());
  throw UserError(
      fmt::format("srun starts {} tasks a node, and each is an lrun that would start all workers of its node", most),
      fmt::format("write 'srun --ntasks-per-node=1 lrun …', {}", kSwitchedOff));
}

}  // namespace

std::optional<SlurmStep> slurm_step(const Environment& environment) {
  const bool in_step =
      told_text(environment, "SLURM_STEP_ID").known() && told_text(environment, "SLURM_PROCID").known();
  if (!in_step || is_worker(environment)) return std::nullopt;
  const std::string tasks_text = first_of(environment, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
  const auto tasks = parse_slurm_counts(tasks_text);
  if (!tasks) {
    throw UserError(fmt::format("'SLURM_STEP_TASKS_PER_NODE={}' cannot be read", tasks_text), kSwitchedOff);
  }
  if (std::any_of(tasks->begin(), tasks->end(), [](int count) { return count > 1; })) refuse_several_tasks(*tasks);
  if (tasks->size() == 1) return std::nullopt;

  const std::string list = first_of(environment, "SLURM_STEP_NODELIST", "SLURM_NODELIST");
  auto hosts = parse_slurm_hosts(list);
  if (!hosts || hosts->size() != tasks->size() || environment.has("SLURM_HET_SIZE")) {
    throw UserError(fmt::format("the step's nodes '{}' and tasks '{}' do not say which node this is", list, tasks_text),
                    "give '--num_nodes', '--node-rank' and '--rdzv-endpoint'");
  }
  return SlurmStep{environment.get("SLURM_JOB_ID").value_or(""), environment.get("SLURM_STEP_ID").value_or(""),
                   number_of(environment, "SLURM_NODEID", static_cast<int>(hosts->size()) - 1), std::move(*hosts)};
}

JobPlace meeting_of(const SlurmStep& step) {
  const std::string name = step.job + "." + step.step;
  return {.run_name = "slurm-" + name, .host = step.hosts.front(), .port = port_for(name), .node_rank = step.node_rank};
}

int nodes_of_batch_script(const Environment& environment) {
  const bool script =
      told_text(environment, "SLURM_JOB_ID").known() && !told_text(environment, "SLURM_STEP_ID").known();
  if (!script || is_worker(environment)) return 0;
  const auto hosts = parse_slurm_hosts(environment.get("SLURM_JOB_NODELIST").value_or(""));
  return hosts && hosts->size() > 1 ? static_cast<int>(hosts->size()) : 0;
}

}  // namespace lrun
