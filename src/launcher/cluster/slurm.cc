// Reads Slurm's variables: the step of a task, or the nodes of a batch script's job. detect_allocation() and the start
// of launchers through srun call it.
#include "cluster/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "base/numeric_address.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "cluster/managed_job.h"
#include "cluster/outer_launcher.h"
#include "cluster/slurm_lists.h"

namespace lrun::launcher {
namespace {

constexpr int kMostComponents = 128;  // Slurm's own limit
constexpr const char* kSwitchedOff = "give '--standalone' to every lrun that should run by itself";

/// The number of a variable, from 0 to `most`. \throws UserError  it is not such a number.
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

/// The shell of salloc may be a step, too (LaunchParameters=use_interactive_step), always with this number.
bool is_shell_of_salloc(const Environment& environment) { return environment.get("SLURM_STEP_ID") == "4294967290"; }

bool is_in_batch_script(const Environment& environment) {
  return reported_text(environment, "SLURM_JOB_ID").known() && !is_worker(environment) &&
         (!reported_text(environment, "SLURM_STEP_ID").known() || is_shell_of_salloc(environment));
}

/// Not a worker of another launcher, which inherits the variables.
bool is_in_step(const Environment& environment) {
  return reported_text(environment, "SLURM_STEP_ID").known() && reported_text(environment, "SLURM_PROCID").known() &&
         !is_shell_of_salloc(environment) && !is_worker(environment);
}

std::string_view first_label(std::string_view host) { return host.substr(0, host.find('.')); }

std::string tasks_text_of(const Environment& environment) {
  return first_of(environment, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
}

/// The components of a heterogeneous job; 0 for any other job.
int components_of(const Environment& environment) {
  return environment.has("SLURM_HET_SIZE") ? number_of(environment, "SLURM_HET_SIZE", kMostComponents) : 0;
}

/// Slurm gives the lists their old name where 'srun A : B' made the job instead of sbatch or salloc.
std::string nodes_of_component(const Environment& environment, int component) {
  const auto list = environment.get(fmt::format("SLURM_JOB_NODELIST_HET_GROUP_{}", component));
  return list ? *list : environment.get(fmt::format("SLURM_JOB_NODELIST_PACK_GROUP_{}", component)).value_or("");
}

/// Sorts hosts and tasks of a step by component, which is how Slurm numbers its nodes. Slurm's own lists are sorted by
/// name. \return false when the hosts are not those of all components.
bool sort_by_component(const Environment& environment, int components, std::vector<std::string>& hosts,
                       std::vector<int>& tasks) {
  std::vector<std::string> in_order;
  std::vector<int> tasks_in_order;
  for (int i = 0; i < components; ++i) {
    const auto of_one = parse_slurm_hosts(nodes_of_component(environment, i));
    if (!of_one) return false;
    for (const std::string& host : *of_one) {
      const auto place = std::find(hosts.begin(), hosts.end(), host);
      if (place == hosts.end()) return false;
      in_order.push_back(host);
      tasks_in_order.push_back(tasks[static_cast<std::size_t>(place - hosts.begin())]);
    }
  }
  if (in_order.size() != hosts.size()) return false;
  hosts = std::move(in_order);
  tasks = std::move(tasks_in_order);
  return true;
}

}  // namespace

bool SlurmStep::has_several_a_node() const {
  return std::any_of(tasks.begin(), tasks.end(), [](int count) { return count > 1; });
}

std::optional<SlurmStep> slurm_step(const Environment& environment) {
  if (!is_in_step(environment)) return std::nullopt;
  const std::string tasks_text = tasks_text_of(environment);
  auto tasks = parse_slurm_counts(tasks_text);
  if (!tasks) {
    const std::string name = "SLURM_STEP_TASKS_PER_NODE";
    throw UserError(tasks_text.empty() ? fmt::format("this is a task of srun, and {} is not set", name)
                                       : fmt::format("'{}={}' cannot be read", name, tasks_text),
                    kSwitchedOff);
  }
  const int ranks = std::accumulate(tasks->begin(), tasks->end(), 0);
  if (ranks <= 1) return std::nullopt;  // 'srun -n1 lrun …' is a run on one machine

  const std::string list = first_of(environment, "SLURM_STEP_NODELIST", "SLURM_NODELIST");
  auto hosts = parse_slurm_hosts(list);
  const int components = components_of(environment);
  const bool agree = hosts && hosts->size() == tasks->size();
  if (!agree || (components > 0 && !sort_by_component(environment, components, *hosts, *tasks))) {
    throw UserError(
        fmt::format("the step's nodes '{}' and tasks '{}' do not tell which node this is", list, tasks_text), kByHand);
  }
  SlurmStep step{environment.get("SLURM_JOB_ID").value_or(""), environment.get("SLURM_STEP_ID").value_or("")};
  step.node_rank = number_of(environment, "SLURM_NODEID", static_cast<int>(hosts->size()) - 1);
  step.hosts = std::move(*hosts);
  step.tasks = std::move(*tasks);
  step.rank = number_of(environment, "SLURM_PROCID", ranks - 1);
  const int here = step.tasks[static_cast<std::size_t>(step.node_rank)];
  if (here > 1) step.local_rank = number_of(environment, "SLURM_LOCALID", here - 1);
  return step;
}

int tasks_of_step(const Environment& environment) {
  const auto tasks = is_in_step(environment) ? parse_slurm_counts(tasks_text_of(environment)) : std::nullopt;
  return tasks ? std::accumulate(tasks->begin(), tasks->end(), 0) : 0;
}

JobPlace job_place_of(const SlurmStep& step) {
  const std::string name = step.job + "." + step.step;
  const std::string host = step.hosts.size() == 1 ? "127.0.0.1" : step.hosts.front();
  JobPlace place{.run_name = "slurm-" + name, .host = host, .port = port_for(name), .node_rank = step.node_rank};
  place.shares_screen = true;
  if (!step.has_several_a_node()) {
    place.hosts = step.hosts;
    return place;
  }
  place.task = TaskPlace{.rank = step.rank,
                         .ranks = std::accumulate(step.tasks.begin(), step.tasks.end(), 0),
                         .local_rank = step.local_rank,
                         .ranks_here = step.tasks[static_cast<std::size_t>(step.node_rank)],
                         .node_rank = step.node_rank,
                         .nodes = static_cast<int>(step.hosts.size()),
                         .ranks_by_node = step.tasks};
  return place;
}

std::vector<std::string> slurm_job_names(const Environment& environment) {
  constexpr unsigned kFirstReserved = 0xFFFFFFF0;  // the batch script and the shell of salloc
  const auto number = [&environment](const char* name) {
    return whole_number<std::uint32_t>(environment.get(name).value_or(""));
  };
  const auto job = number("SLURM_JOB_ID");
  if (!job) return {};
  const auto step = number("SLURM_STEP_ID");
  const std::string end = step && *step < kFirstReserved ? fmt::format(".{}", *step) : std::string();
  std::vector<std::string> names{fmt::format("{}{}", *job, end)};
  const auto array = number("SLURM_ARRAY_JOB_ID");
  const auto task = number("SLURM_ARRAY_TASK_ID");
  if (array && task) names.insert(names.begin(), fmt::format("{}_{}{}", *array, *task, end));
  return names;
}

bool repeats_term(const Environment& environment) { return reported_text(environment, "SLURM_JOB_ID").known(); }

SlurmShare share_of_node(const Environment& environment) {
  if (is_worker(environment) || !reported_text(environment, "SLURM_JOB_ID").known()) return {};
  const auto count = [&environment](const char* name) {
    return std::max(0, whole_number<int>(environment.get(name).value_or("")).value_or(0));
  };
  return {count("SLURM_GPUS_ON_NODE"), count("SLURM_CPUS_ON_NODE")};
}

std::string gpus_per_node(const Environment& environment) {
  const std::string asked = environment.get("SLURM_GPUS_PER_TASK").value_or("");
  const std::size_t colon = asked.rfind(':');
  const std::size_t number = colon == std::string::npos ? 0 : colon + 1;
  const auto of_task = whole_number<int>(std::string_view(asked).substr(number));
  const auto tasks = parse_slurm_counts(environment.get("SLURM_TASKS_PER_NODE").value_or(""));
  if (!of_task || *of_task < 1 || !tasks || tasks->front() < 1) return {};
  if (std::any_of(tasks->begin(), tasks->end(), [&](int count) { return count != tasks->front(); })) {
    throw UserError(fmt::format("'SLURM_GPUS_PER_TASK={}' of {} tasks gives the nodes different numbers of GPUs", asked,
                                std::accumulate(tasks->begin(), tasks->end(), 0)),
                    "write 'srun lrun …', one launcher per rank, or request '--gpus-per-node'");
  }
  return asked.substr(0, number) + std::to_string(std::int64_t{*of_task} * tasks->front());
}

int tasks_asked_per_node(const Environment& environment) {
  const char* const name = is_in_batch_script(environment) ? "SLURM_NTASKS_PER_NODE" : kTasksAsked;
  const auto tasks = whole_number<int>(environment.get(name).value_or(""));
  return tasks && !is_worker(environment) ? std::max(0, *tasks) : 0;
}

int tasks_asked_in_all(const Environment& environment) {
  if (!is_in_batch_script(environment) || environment.has("SLURM_NTASKS_PER_NODE")) return 0;
  return std::max(0, whole_number<int>(environment.get("SLURM_NTASKS").value_or("")).value_or(0));
}

BatchNodes nodes_of_batch_script(const Environment& environment, const std::string& this_host) {
  if (!is_in_batch_script(environment)) return {};
  if (const int components = components_of(environment); components > 1) {
    throw UserError(
        fmt::format("this job has {} components, and lrun would use only the nodes of the first", components),
        fmt::format("write 'srun --het-group=0-{} lrun …', or {}", components - 1, kSwitchedOff));
  }
  const std::string list = environment.get("SLURM_JOB_NODELIST").value_or("");
  const auto hosts = parse_slurm_hosts(list);
  if (!hosts && !list.empty()) {
    throw UserError(fmt::format("'SLURM_JOB_NODELIST={}' cannot be read", list), kSwitchedOff);
  }
  if (!hosts) return {};
  const std::string name_in_slurm = environment.get("SLURMD_NODENAME").value_or(this_host);
  return {static_cast<int>(hosts->size()), std::any_of(hosts->begin(), hosts->end(), [&](const std::string& host) {
            return first_label(host) == first_label(name_in_slurm) || !loopback_address_of(host).empty();
          })};
}

}  // namespace lrun::launcher
