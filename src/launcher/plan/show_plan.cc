// The plan for people: --dry-run. A LaunchPlan and the environment of workers come in, a text goes out. run_request()
// calls show_plan().
#include "plan/show_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/shell_words.h"
#include "cluster/visible_gpus.h"
#include "plan/cpu_binding.h"
#include "plan/horovod_environment.h"
#include "plan/worker_command.h"
#include "plan/worker_environment.h"

namespace lrun::launcher {
namespace {

constexpr int kMostRankLines = 8;           // more workers get a line per node
constexpr std::size_t kMostNodeLines = 16;  // more nodes are folded
constexpr std::size_t kWidth = 120;
constexpr std::string_view kAtStart = "(decided at start)";

template <class T>
std::string origin_text(const Setting<T>& setting) {
  return setting.given() ? setting.origin : "default";
}

std::string row(std::string_view name, const std::string& value, const std::string& from = {}) {
  if (from.empty()) return fmt::format("{:<14}{}\n", name, value);
  return fmt::format("{:<14}{:<40}  {}\n", name, value, from);
}

std::string plural(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string device_names(const std::vector<DeviceId>& devices) {
  if (devices.front().kind == DeviceKind::kCpu) return fmt::format("{} on CPUs", devices.size());
  std::string ids;
  for (const DeviceId& device : devices) ids += (ids.empty() ? "" : ",") + device.id;
  if (devices.front().kind == DeviceKind::kTpu) return (devices.size() == 1 ? "TPU chip " : "TPU chips ") + ids;
  return (devices.size() == 1 ? "GPU " : "GPUs ") + ids;
}

std::string devices_text(const LaunchPlan& plan) {
  const std::vector<DeviceId>& first = plan.nodes.front().devices;
  if (plan.is_of_one_rank) return device_names(first) + ", of this rank";
  if (plan.num_nodes == 1) return device_names(first);
  const bool equal =
      std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const NodePlan& node) { return node.devices == first; });
  if (equal) return device_names(first) + ", on every node";
  std::size_t all = 0;
  for (const NodePlan& node : plan.nodes) all += node.devices.size();
  return fmt::format("{} on all nodes together", all);
}

std::string thread_row(const LaunchPlan& plan, const Environment& base) {
  if (const auto users = base.get("OMP_NUM_THREADS"); users && plan.omp_num_threads == 0) {
    return row("OMP threads", *users, "OMP_NUM_THREADS");
  }
  if (plan.nodes.front().workers.front().omp_num_threads > 0) {
    return row("OMP threads", "one for each core", plan.bind.origin);
  }
  if (plan.omp_num_threads == 0) return row("OMP threads", "unchanged", "default for one worker");
  const bool share = plan.personality.omp_threads == Personality::OmpThreads::kFairShare;
  return row("OMP threads", std::to_string(plan.omp_num_threads),
             share ? "default: a fair share" : "default of torchrun");
}

/// The changes to every worker before its program begins, as far as there are any.
std::string setup_rows(const WorkerSetup& setup) {
  std::string text;
  if (setup.folder.given()) text += row("folder", setup.folder.value, setup.folder.origin);
  for (const EnvironmentChange& change : setup.environment) {
    const std::string what = change.kind == EnvironmentChange::Kind::kSet
                                 ? change.name + "=" + shell_line({change.value})
                             : change.kind == EnvironmentChange::Kind::kUnset ? "without " + change.name
                                                                              : change.name + " as it is here";
    text += row("variable", what, change.origin);
  }
  for (const ResourceLimit& limit : setup.limits) text += row("limit", text_of(limit), limit.origin);
  if (setup.core_dumps) text += row("core dumps", "as large as the hard limit allows", "--core");
  if (setup.debug_rank.given()) {
    text += row("debugger", "on this terminal, for rank " + std::to_string(setup.debug_rank.value),
                setup.debug_rank.origin);
  }
  for (const Wrapper& wrapper : setup.wrappers) text += row("wrapper", shell_line(wrapper.words), wrapper.origin);
  return text;
}

/// The work: devices, strategy and size of the run.
std::string work_rows(const LaunchPlan& plan) {
  const StrategyFacts& strategy = facts_of(plan.strategy.value);
  const std::string strategy_from = plan.strategy.given()                   ? plan.strategy.origin
                                    : is_horovod(plan)                      ? "default of horovodrun"
                                    : plan.strategy.value == Strategy::kDdp ? "default for more than one device or node"
                                                                            : "default for one device";
  std::string text = row("devices", devices_text(plan), plan.devices.given() ? as_written(plan.devices) : "default");
  text += row("accelerator", text_of(plan.accelerator.value),
              plan.accelerator.given() ? plan.accelerator.origin : "default: GPUs if there are any");
  text += row("strategy", std::string(strategy.name) + (strategy.needs_liblrun() ? ", carried out by liblrun" : ""),
              strategy_from);
  text += row("world size", std::to_string(plan.world_size));
  return text + row("backend", text_of(plan.process_group_backend.value), origin_text(plan.process_group_backend));
}

/// Where the launchers of several nodes meet, and this node's place among them.
std::string rendezvous_rows(const LaunchPlan& plan) {
  if (!plan.rendezvous) return {};
  const RendezvousPlan& rendezvous = *plan.rendezvous;
  std::string text;
  if (!rendezvous.host.empty()) {
    std::string place = fmt::format("{}, port {}", rendezvous.host, rendezvous.port);
    if (!rendezvous.etcd.empty()) {
      place = fmt::format("by '{}' in etcd at {}{}", rendezvous.etcd_folder, place,
                          rendezvous.etcd_tls ? ", over TLS" : "");
    }
    const std::string origin = rendezvous.host_from.empty() ? "" : ", " + rendezvous.host_from;
    text += row("rendezvous", place, text_of(rendezvous.backend) + origin);
  }
  if (!rendezvous.node_rank) return text;
  const std::string rank = std::to_string(*rendezvous.node_rank);
  if (!plan.is_of_one_rank) return text + row("node rank", rank, rendezvous.node_rank_from);
  const NodePlan& node = plan.nodes.front();
  return text + row("rank",
                    fmt::format("{}, local rank {} of {} on node {}", rank, node.workers.front().local_rank,
                                node.local_world_size(), node.node_rank),
                    rendezvous.node_rank_from);
}

/// A limit that is set.
std::string limit_row(std::string_view name, const Setting<Duration>& limit) {
  const bool is_set = limit.value > Duration::zero();
  return is_set ? row(name, format_duration(limit.value), origin_text(limit)) : std::string();
}

/// How the run ends, and how often it begins again.
std::string end_rows(const LaunchPlan& plan) {
  std::string text = row("grace", format_duration(plan.grace.value), origin_text(plan.grace));
  if (plan.settle.given()) text += row("settle", format_duration(plan.settle.value), origin_text(plan.settle));
  text += limit_row("timeout", plan.timeout);
  text += limit_row("start timeout", plan.start_timeout);
  text += limit_row("hang timeout", plan.hang_timeout);
  if (plan.max_restarts.value == 0) return text;
  text += row("restarts", fmt::format("at most {}", plan.max_restarts.value), origin_text(plan.max_restarts));
  return text + row("back-off", format_duration(plan.restart_backoff.value), origin_text(plan.restart_backoff));
}

/// MASTER_ADDR and MASTER_PORT of the workers, as far as they are known before the start: with a static rendezvous they
/// are its endpoint.
struct Master {
  explicit Master(const LaunchPlan& plan)
      : is_endpoint(plan.rendezvous && plan.rendezvous->workers_use_endpoint && !plan.rendezvous->host.empty()),
        address(is_endpoint ? plan.rendezvous->host : plan.master_addr),
        port(is_endpoint ? plan.rendezvous->port : plan.master_port.value_or(0)) {}

  bool is_endpoint;
  std::string address;  ///< a name, which launchers look up; empty: not known
  int port;             ///< 0: not known
};

std::string settings(const LaunchPlan& plan, const Environment& base) {
  const Master master(plan);
  const std::string port = master.port != 0 ? std::to_string(master.port) : std::string(kAtStart);
  std::string text = row("run", plan.run_id);
  text += row("program", shell_line(plan.argv));
  text += setup_rows(plan.setup);
  const bool is_range = plan.rendezvous && plan.rendezvous->min_nodes < plan.num_nodes;
  text +=
      row("nodes",
          is_range ? fmt::format("{} to {}, shown for {}", plan.rendezvous->min_nodes, plan.num_nodes, plan.num_nodes)
                   : std::to_string(plan.num_nodes),
          plan.allocation);
  if (plan.rendezvous && plan.rendezvous->spares > 0) {
    text += row("spares", plural(static_cast<std::size_t>(plan.rendezvous->spares), "node waits", "nodes wait"));
  }
  text += work_rows(plan);
  text += row("master", (master.address.empty() ? std::string(kAtStart) : master.address) + ", port " + port);
  text += rendezvous_rows(plan);
  text += row("seed", plan.seed.value ? std::to_string(*plan.seed.value) : "none", origin_text(plan.seed));
  text += thread_row(plan, base);
  if (plan.bind.given()) text += row("binding", text_of(plan.bind.value), plan.bind.origin);
  if (plan.output.console.given() || !plan.output.captures_all)
    text += row("output", name_of_console(plan.output), origin_text(plan.output.console));
  text +=
      row("logs", plan.log_dir.value.empty() ? "in the run directory" : plan.log_dir.value, origin_text(plan.log_dir));
  return text + end_rows(plan);
}

/// The CPUs of the first node's workers.
std::string binding(const LaunchPlan& plan) {
  const std::vector<std::string> lines = binding_lines(plan.nodes.front());
  if (lines.empty()) return {};
  std::string text = plan.num_nodes > 1 ? "\nbinding on " + plan.nodes.front().name + ":\n" : "\nbinding:\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

RunFacts facts_before_start(const LaunchPlan& plan) {
  const Master master(plan);
  return {.master_port = master.port, .master_addr = master.address};
}

/// A worker's variables as one would set them by hand, then its command.
std::string rank_line(const LaunchPlan& plan, const NodePlan& node, const WorkerEnvironment& environment,
                      const WorkerPlan& worker) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : environment.shared_contract()) values[name] = value;
  for (const auto& [name, value] : environment.of(worker)) values[name] = value;
  if (Master(plan).port == 0) values["MASTER_PORT"] = kAtStart;
  std::string text = " ";
  for (const char* name :
       {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "NODE_RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "TPU_VISIBLE_CHIPS", "LRUN_DEVICES"}) {
    const auto found = values.find(name);
    if (found != values.end() && !found->second.empty()) text += fmt::format(" {}={}", name, found->second);
  }
  return text + " " + shell_line(command_of(plan, node, worker, 0)) + "\n";
}

std::string node_line(const NodePlan& node) {
  const int last_local = static_cast<int>(node.workers.size()) - 1;
  const std::string ranks = last_local == 0 ? fmt::format("rank {}", node.base_rank)
                                            : fmt::format("ranks {}-{}", node.base_rank, node.base_rank + last_local);
  const std::string local = last_local == 0 ? "local 0" : fmt::format("local 0-{}", last_local);
  const std::string variable = visibility_variable(node.gpu_vendor);
  const auto& visible = node.workers.front().visible_devices;
  const bool equal = std::all_of(node.workers.begin(), node.workers.end(),
                                 [&](const WorkerPlan& worker) { return worker.visible_devices == visible; });
  const std::string sees = !equal ? "  " + variable + ": one each" : visible ? "  " + variable + "=" + *visible : "";
  return fmt::format("  node {:<4} {:<20}  {:<14}  {:<11}  {}{}\n", node.node_rank, node.name, ranks, local,
                     device_names(node.devices), sees);
}

std::string workers(const LaunchPlan& plan, const Environment& base) {
  std::string text = fmt::format("\n{}{} on {}:\n", plan.is_of_one_rank ? "one of " : "",
                                 plural(static_cast<std::size_t>(plan.world_size), "worker", "workers"),
                                 plural(static_cast<std::size_t>(plan.num_nodes), "node", "nodes"));
  if (plan.world_size <= kMostRankLines || plan.is_of_one_rank) {
    for (const NodePlan& node : plan.nodes) {
      const WorkerEnvironment environment(plan, node, base, facts_before_start(plan));
      for (const WorkerPlan& worker : node.workers) text += rank_line(plan, node, environment, worker);
    }
    return text;
  }
  const bool folded = plan.nodes.size() > kMostNodeLines;
  const std::size_t shown = folded ? kMostNodeLines / 2 : plan.nodes.size();
  for (std::size_t i = 0; i < shown; ++i) text += node_line(plan.nodes[i]);
  if (folded) {
    text += fmt::format("  ... {} more nodes ...\n", plan.nodes.size() - shown - 1);
    text += node_line(plan.nodes.back());
  }
  return text;
}

/// Words with blanks between them, broken at the width of the page.
std::string wrapped(const std::vector<std::string>& words) {
  std::string text;
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "  " : " ") + word;
  }
  return line.empty() ? text : text + line + "\n";
}

/// Variables that are equal for all workers of all nodes.
std::string common_environment(const LaunchPlan& plan, const Environment& base) {
  const WorkerEnvironment environment(plan, plan.nodes.front(), base, facts_before_start(plan));
  std::vector<std::string> words;
  for (const auto& [name, value] : environment.shared_contract()) {
    const ContractVariable* const row = find_contract_variable(name);
    const bool node_scope = row != nullptr && row->scope == ContractVariable::Scope::kNode && name != "OMP_NUM_THREADS";
    const bool shown_above = name == "MASTER_ADDR" || name == "MASTER_PORT" || name == "WORLD_SIZE" ||
                             name.starts_with("HOROVOD_GLOO_RENDEZVOUS_");
    if (!node_scope && !shown_above) words.push_back(name + "=" + shell_line({value}));
  }
  std::string text = "\nevery worker:\n" + wrapped(words);
  std::vector<std::string> replaced = replaced_variables(plan, base);
  for (std::string& variable : replaced) variable = shell_line({variable});
  if (!replaced.empty()) text += "\nreplaced:\n" + wrapped(replaced);
  if (!environment.removed().empty()) text += "\nnot passed on:\n" + wrapped(environment.removed());
  return text;
}

}  // namespace

std::string show_plan_text(const LaunchPlan& plan, const Environment& environment) {
  std::string text =
      settings(plan, environment) + workers(plan, environment) + binding(plan) + common_environment(plan, environment);
  for (const std::string& warning : plan.warnings) text += "\nwarning: " + warning + "\n";
  for (const std::string& note : plan.notes) text += "\nnote: " + note + "\n";
  return text;
}

std::string show_plan(const LaunchPlan& plan, const Environment& environment, DryRun format) {
  return format == DryRun::kJson ? show_plan_json(plan, environment) : show_plan_text(plan, environment);
}

}  // namespace lrun::launcher
