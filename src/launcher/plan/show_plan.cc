// The plan for people: --dry-run. A LaunchPlan and the environment of workers come in, a text goes out. run_request()
// calls show_plan().
#include "plan/show_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/bytes_text.h"
#include "base/shell_words.h"
#include "base/split.h"
#include "base/whole_number.h"
#include "cluster/visible_gpus.h"
#include "plan/cpu_binding.h"
#include "plan/horovod_environment.h"
#include "plan/known_master.h"
#include "plan/worker_command.h"
#include "plan/worker_environment.h"

namespace lrun::launcher {
namespace {

constexpr int kMostRankLines = 8;           // more workers get a line per node
constexpr std::size_t kMostNodeLines = 16;  // more nodes are folded
constexpr std::size_t kWidth = 80;          // of a terminal
constexpr std::size_t kLabel = 14;
constexpr std::size_t kValue = 32;

template <class T>
std::string origin_text(const Setting<T>& setting) {
  return setting.given() ? setting.origin : "default";
}

/// Words behind `begin`, broken at the width of the page and continued below the column where they begin.
std::string wrapped(std::string begin, const std::vector<std::string>& words) {
  const std::size_t column = begin.size();
  std::string text;
  std::string line = std::move(begin);
  for (const std::string& word : words) {
    const bool is_first = line.size() == column;
    if (!is_first && line.size() + 1 + word.size() > kWidth) {
      text += line + "\n";
      line = std::string(column, ' ');
    }
    line += (line.size() == column ? "" : " ") + word;
  }
  return text + line + "\n";
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) words.emplace_back(cut(text, ' '));
  return words;
}

std::string row(std::string_view name, const std::string& value) {
  return wrapped(fmt::format("{:<{}}", name, kLabel), words_of(value));
}

/// A long value has its source below it.
std::string row(std::string_view name, const std::string& value, const std::string& from) {
  if (from.empty()) return row(name, value);
  constexpr std::size_t kSource = kLabel + kValue + 2;
  const bool fits = value.size() <= kValue || kLabel + value.size() + 2 + from.size() <= kWidth;
  if (fits) return wrapped(fmt::format("{:<{}}{:<{}}  ", name, kLabel, value, kValue), words_of(from));
  return row(name, value) + wrapped(std::string(kSource, ' '), words_of(from));
}

std::vector<std::string> quoted(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) all.push_back(shell_line({word}));
  return all;
}

std::string plural(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// '0-7', '2,3'; two are no range.
std::string ids_of(const std::vector<DeviceId>& devices) {
  const std::optional<int> first = whole_number<int>(devices.front().id);
  bool is_range = first && devices.size() > 2;
  std::string ids;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    ids += (ids.empty() ? "" : ",") + devices[i].id;
    is_range = is_range && devices[i].id == std::to_string(*first + static_cast<int>(i));
  }
  return is_range ? devices.front().id + "-" + devices.back().id : ids;
}

std::string device_names(const std::vector<DeviceId>& devices) {
  if (devices.front().kind == DeviceKind::kCpu) return fmt::format("{} on CPUs", devices.size());
  const std::string ids = ids_of(devices);
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

/// A list of hosts is shown whole where it gives each its devices.
std::string devices_from(const LaunchPlan& plan) {
  const std::string& origin = plan.devices.origin;
  return origin.find(' ') == std::string::npos ? as_written(plan.devices) : origin;
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
  if (setup.preload.given()) text += row("preload", setup.preload.value, setup.preload.origin);
  if (setup.memory.given()) {
    const std::optional<std::uint64_t>& bytes = setup.memory.value.bytes;
    const std::string limit = bytes == 0                           ? "none"
                              : bytes == ResourceLimit::kUnlimited ? "unlimited"
                                                                   : bytes_text(*bytes);
    text += row("memory folder", limit, setup.memory.origin);
  }
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
                                    : plan.strategy.value == Strategy::kDdp ? "default for several devices"
                                                                            : "default for one device";
  std::string text = row("devices", devices_text(plan), plan.devices.given() ? devices_from(plan) : "default");
  text += row("accelerator", plan.accelerator_word.empty() ? text_of(plan.accelerator.value) : plan.accelerator_word,
              plan.accelerator.given() ? plan.accelerator.origin : "default: GPUs if there are any");
  text += row("strategy", std::string(strategy.name) + (strategy.needs_liblrun() ? ", by liblrun" : ""), strategy_from);
  text += row("world size", std::to_string(plan.world_size));
  const bool is_of_others = plan.python && !plan.process_group_backend.given();  // a program names its own
  return text + row("backend", text_of(plan.process_group_backend.value),
                    is_of_others ? "default for programs of liblrun" : origin_text(plan.process_group_backend));
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
    const std::string origin = rendezvous.host_from.empty() ? "" : " (" + rendezvous.host_from + ")";
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
  for (const WatchRule& rule : plan.output.watch) text += row("watch", rule.text, rule.origin);
  if (const Setting<MetricsTarget>& metrics = plan.output.metrics; metrics.value.is_given()) {
    text += row("metrics", text_of(metrics.value), origin_text(metrics));
  }
  if (plan.notice.value.is_given()) text += row("notice", text_of(plan.notice.value), origin_text(plan.notice));
  if (plan.max_restarts.value == 0) return text;
  const char* const since = plan.checkpoint_path.given() ? " since the newest checkpoint" : "";
  text += row("restarts", fmt::format("at most {}{}", plan.max_restarts.value, since), origin_text(plan.max_restarts));
  if (plan.checkpoint_path.given()) {
    text += row("checkpoints", plan.checkpoint_path.value, origin_text(plan.checkpoint_path));
  }
  return text + row("back-off", format_duration(plan.restart_backoff.value), origin_text(plan.restart_backoff));
}

std::string master_text(const LaunchPlan& plan) {
  const KnownMaster master(plan);
  if (!master.address.empty()) {
    return master.address + (master.port != 0 ? fmt::format(", port {}", master.port) : ", port chosen at start");
  }
  const std::string port = master.port != 0 ? fmt::format(", port {}", master.port) : "";
  const std::string& first = plan.nodes.front().name;
  const bool is_first_known = !plan.nodes.back().name.empty() || (plan.rendezvous && plan.rendezvous->node_rank == 0);
  if (is_first_known && plan.rendezvous && plan.rendezvous->host.empty())
    return first + (port.empty() ? ", address and port chosen at start" : port);
  return port.empty() ? "chosen at start" : "chosen at start" + port;
}

std::string settings(const LaunchPlan& plan, const Environment& base) {
  std::string text = row("run", plan.run_id);
  text += wrapped(fmt::format("{:<{}}", "program", kLabel), quoted(plan.argv));
  if (plan.python) {
    text += row("python", plan.python->path.empty() ? plan.python->program : plan.python->path, plan.python->reason);
  }
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
  text += row("master", master_text(plan));
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
  const std::string& name = plan.nodes.front().name;
  const bool is_named = plan.num_nodes > 1 && !name.empty();
  std::string text = is_named ? "\nbinding on " + name + ":\n" : "\nbinding:\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

RunFacts facts_before_start(const LaunchPlan& plan) {
  const KnownMaster master(plan);
  return {.master_port = master.port, .master_addr = master.address};
}

std::size_t longest_name(const LaunchPlan& plan) {
  std::size_t longest = 0;
  for (const NodePlan& node : plan.nodes) longest = std::max(longest, node.name.size());
  return longest;
}

/// Of a run of several nodes the host, then the variables that a worker does not share with all, then the command where
/// each worker has its own.
std::string rank_line(const LaunchPlan& plan, const NodePlan& node, const WorkerEnvironment& environment,
                      const WorkerPlan& worker) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : environment.shared_contract()) values[name] = value;
  for (const auto& [name, value] : environment.of(worker)) values[name] = value;
  std::vector<std::string> words;
  for (const char* name : {"RANK", "NODE_RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                           "ZE_AFFINITY_MASK", "TPU_VISIBLE_CHIPS", "LRUN_DEVICES", "PYTHONBREAKPOINT"}) {
    const auto found = values.find(name);
    if (found != values.end() && !found->second.empty()) words.push_back(fmt::format("{}={}", name, found->second));
  }
  const std::vector<std::string> command = command_of(plan, node, worker, 0);
  if (command != plan.argv) {
    for (std::string& word : quoted(command)) words.push_back(std::move(word));
  }
  const std::size_t name_width = plan.num_nodes > 1 ? longest_name(plan) : 0;
  return wrapped(name_width == 0 ? "  " : fmt::format("  {:<{}}  ", node.name, name_width), words);
}

std::string node_line(const LaunchPlan& plan, const NodePlan& node) {
  const int last_local = static_cast<int>(node.workers.size()) - 1;
  const std::string ranks = last_local == 0 ? fmt::format("rank {}", node.base_rank)
                                            : fmt::format("ranks {}-{}", node.base_rank, node.base_rank + last_local);
  const std::string variable = visibility_variable(node.gpu_vendor);
  const auto& visible = node.workers.front().visible_devices;
  const bool equal = std::all_of(node.workers.begin(), node.workers.end(),
                                 [&](const WorkerPlan& worker) { return worker.visible_devices == visible; });
  const std::string sees = !equal ? "  " + variable + ": one each" : visible ? "  " + variable + "=" + *visible : "";
  const std::size_t name_width = longest_name(plan);
  const std::string name = name_width == 0 ? "" : fmt::format("  {:<{}}", node.name, name_width);
  return fmt::format("  node {:<4}{}  {:<14}  {}{}\n", node.node_rank, name, ranks, device_names(node.devices), sees);
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
  for (std::size_t i = 0; i < shown; ++i) text += node_line(plan, plan.nodes[i]);
  if (folded) {
    text += fmt::format("  ... {} more nodes ...\n", plan.nodes.size() - shown - 1);
    text += node_line(plan, plan.nodes.back());
  }
  return text;
}

/// Variables that are equal for all workers of all nodes.
std::string common_environment(const LaunchPlan& plan, const Environment& base) {
  const WorkerEnvironment environment(plan, plan.nodes.front(), base, facts_before_start(plan));
  const KnownMaster master(plan);
  std::vector<std::string> words;
  if (!master.address.empty()) words.push_back("MASTER_ADDR=" + master.address);
  if (master.port != 0) words.push_back(fmt::format("MASTER_PORT={}", master.port));
  words.push_back(fmt::format("WORLD_SIZE={}", plan.world_size));
  for (const auto& [name, value] : environment.shared_contract()) {
    const ContractVariable* const row = find_contract_variable(name);
    const bool node_scope = row != nullptr && row->scope == ContractVariable::Scope::kNode && name != "OMP_NUM_THREADS";
    const bool is_of_start = name == "MASTER_ADDR" || name == "MASTER_PORT" || name == "WORLD_SIZE" ||
                             name.starts_with("HOROVOD_GLOO_RENDEZVOUS_");
    if (!node_scope && !is_of_start) words.push_back(name + "=" + shell_line({value}));
  }
  std::string text = "\nevery worker:\n" + wrapped("  ", words);
  const std::vector<std::string> replaced = quoted(replaced_variables(plan, base));
  if (!replaced.empty()) text += "\nreplaced:\n" + wrapped("  ", replaced);
  if (!environment.removed().empty()) text += "\nnot passed on:\n" + wrapped("  ", environment.removed());
  return text;
}

}  // namespace

std::string show_plan_text(const LaunchPlan& plan, const Environment& environment) {
  return settings(plan, environment) + workers(plan, environment) + binding(plan) +
         common_environment(plan, environment);
}

std::string show_plan(const LaunchPlan& plan, const Environment& environment, DryRun format) {
  return format == DryRun::kJson ? show_plan_json(plan, environment) : show_plan_text(plan, environment);
}

}  // namespace lrun::launcher
