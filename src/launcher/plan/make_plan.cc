#include "plan/make_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "base/user_error.h"
#include "plan/backend_choice.h"
#include "plan/cpu_binding.h"
#include "plan/crowded_cpus.h"
#include "plan/device_choice.h"
#include "plan/gpu_visibility.h"
#include "plan/horovod_environment.h"
#include "plan/job_place.h"
#include "plan/outer_run.h"
#include "plan/rank_layout.h"
#include "plan/strategy_choice.h"
#include "plan/task_place.h"
#include "plan/tpu_choice.h"
#include "plan/worker_command.h"

namespace lrun::launcher {
namespace {

// A typing mistake must not become a plan of gigabytes.
constexpr int kMostNodes = 65'536;
constexpr std::size_t kMostWorkers = 1U << 20;
constexpr int kMostThreads = 1 << 20;

// Longer than a culprit needs to end once its connections are gone, and not felt as a wait.
constexpr Duration kDefaultSettleForVictims(250);

/// The allocation's nodes, as many as were asked for. This host is the first where it is to run, and in its place among
/// them where the plan is shown.
std::vector<AllocatedNode> nodes_of_run(const LaunchRequest& request, const Allocation& allocation) {
  if (request.rendezvous.task) return {allocation.nodes.front()};
  const bool alone = request.standalone && request.min_nodes == 1;  // torchrun's '--standalone --nnodes 1:4'
  const int asked = alone ? 1 : request.num_nodes.value;
  if (asked < 1 || asked > kMostNodes) {
    throw UserError("'" + request.num_nodes.origin + " " + std::to_string(asked) + "' is no number of nodes",
                    "use 1 to " + std::to_string(kMostNodes));
  }
  std::vector<AllocatedNode> nodes = allocation.nodes;
  const auto count = static_cast<std::size_t>(asked);
  if (request.num_nodes.given() && nodes.size() > count) nodes.resize(count);
  const auto rank = static_cast<std::size_t>(std::max(0, request.rendezvous.node_rank.value));
  while (nodes.size() < count) {
    AllocatedNode like_the_first = nodes.front();
    like_the_first.name = "node" + std::to_string(nodes.size() <= rank ? nodes.size() - 1 : nodes.size());
    nodes.push_back(std::move(like_the_first));
  }
  if (request.dry_run != DryRun::kNo && rank < count) {
    std::rotate(nodes.begin(), nodes.begin() + 1, nodes.begin() + static_cast<std::ptrdiff_t>(rank) + 1);
  }
  return nodes;
}

/// 'this host (no manager names other nodes), 3 more by --num_nodes'
std::string who_named(std::size_t nodes, const LaunchRequest& request, const Allocation& allocation) {
  std::string text = allocation.source + " (" + allocation.reason + ")";
  const bool by_manager = request.num_nodes.source == Source::kScheduler;  // which stands there already
  if (nodes <= allocation.nodes.size() || by_manager) return text;
  return text + ", " + std::to_string(nodes - allocation.nodes.size()) + " more by " + request.num_nodes.origin;
}

/// What is asked of one node: its own devices, where the user said them of it.
DeviceChoice choose_for(const LaunchRequest& request, const AllocatedNode& node) {
  if (!node.devices.given()) return choose_devices(request, node);
  LaunchRequest of_node = request;
  of_node.nproc_per_node = {};
  of_node.devices = {node.devices, Source::kFlag, node.devices_origin};
  const bool is_list = node.devices.kind == DeviceRequest::Kind::kList;
  const bool on_cpus = request.accelerator.value == DeviceKind::kCpu;
  if (request.dry_run != DryRun::kNo && is_list && node.gpus.gpus.empty() && !on_cpus) {
    // Another host may have them.
    of_node.devices.value = {DeviceRequest::Kind::kCount, static_cast<int>(node.devices.ids.size())};
  }
  return choose_devices(of_node, node);
}

std::vector<DeviceChoice> choose_for_all(const LaunchRequest& request, const std::vector<AllocatedNode>& nodes) {
  std::vector<DeviceChoice> choices;
  std::size_t total = 0;
  for (const AllocatedNode& node : nodes) {
    choices.push_back(choose_for(request, node));
    total += choices.back().devices.size();
    if (total > kMostWorkers) {
      throw UserError("more than " + std::to_string(kMostWorkers) + " devices were asked for",
                      "look at '--devices' and '--num_nodes'");
    }
    if (choices.back().accelerator.value != choices.front().accelerator.value) {
      throw UserError("'" + nodes.front().name + "' and '" + node.name + "' do not have the same kind of devices",
                      "use '--accelerator cpu'");
    }
  }
  return choices;
}

/// Two names of one host. On CPUs they are a job of several nodes that somebody tries on one.
void refuse_devices_twice(const LaunchRequest& request, const Allocation& allocation, const DeviceChoice& here) {
  const std::vector<std::string>& names = allocation.names_of_host;
  if (names.empty() || here.accelerator.value == DeviceKind::kCpu || request.share_gpus) return;
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back("'" + name + "'");
  throw UserError(join_words(quoted) + " are one host, and each would take the same devices of it",
                  "name it once, with all its workers: '-H " + names.front() + ":4'");
}

std::vector<DeviceChoice> choose_all(const LaunchRequest& request, const Allocation& allocation,
                                     const std::vector<AllocatedNode>& nodes) {
  if (!request.rendezvous.task) {
    std::vector<DeviceChoice> choices = choose_for_all(request, nodes);
    refuse_devices_twice(request, allocation, choices.front());
    return choices;
  }
  return {choose_for_task(request, nodes.front(), allocation.gpus_given)};
}

/// OMP_NUM_THREADS of a worker. Threads of dp's replicas each open a team of their own, so devices are counted, not
/// processes.
int threads_per_worker(const LaunchPlan& plan, int cpus, const Environment& environment) {
  if (environment.has("OMP_NUM_THREADS")) return 0;
  const NodePlan& node = plan.nodes.front();
  if (plan.personality.omp_threads == Personality::OmpThreads::kOne) return node.workers.size() > 1 ? 1 : 0;
  return std::max(1, cpus / static_cast<int>(node.devices.size()));
}

/// 'none' is what torchrun calls a run without a name.
std::string run_name(const LaunchRequest& request, const LaunchPlan& plan) {
  const std::string& given = request.rdzv_id;
  if (request.standalone) return plan.run_id;
  if (plan.personality.unnamed_run_is_none) return given.empty() ? "none" : given;
  return given.empty() || given == "none" ? plan.run_id : given;
}

/// Torchrun reads a variable for it when no option says it.
Setting<Duration> grace_of(const LaunchRequest& request, const Environment& environment) {
  constexpr const char* kVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
  const auto text = environment.get(kVariable);
  if (request.grace.source >= Source::kEnvironment || !text || text->empty()) return request.grace;
  if (const auto grace = parse_duration(*text)) return {*grace, Source::kEnvironment, kVariable};
  throw UserError("'" + std::string(kVariable) + "=" + *text + "' is not a time",
                  "give a number of seconds, such as '30'");
}

/// Torchrun's variable for it, which its static backend does not look at.
bool rank_0_hosts_store(const LaunchRequest& request, const Environment& environment) {
  const bool may = request.standalone || request.rendezvous.backend.value != RendezvousBackend::kStatic;
  return may && environment.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") == "1";
}

/// Binds every node's workers. Their threads follow from the CPUs that they got, where lrun sets them at all.
void bind_all(LaunchPlan& plan, const std::vector<AllocatedNode>& nodes, const Environment& environment) {
  if (plan.bind.value == Binding::kNone) return;
  const bool sets_threads = plan.omp_num_threads > 0 && plan.personality.omp_threads != Personality::OmpThreads::kOne;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    NodePlan& node = plan.nodes[i];
    const bool has_quota = nodes[i].cpus < nodes[i].topology.cpus();
    const int most = has_quota ? std::max(1, nodes[i].cpus / static_cast<int>(node.devices.size())) : kMostThreads;
    for (std::string& line : bind_workers(plan.bind, nodes[i].topology, most, node)) {
      plan.warnings.push_back(std::move(line));
    }
    for (WorkerPlan& worker : node.workers) worker.omp_num_threads = sets_threads ? worker.omp_num_threads : 0;
  }
  if (sets_threads) plan.omp_num_threads = 0;
  for (const char* const name : {"GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    if (environment.has(name)) {
      plan.warnings.push_back(std::string(name) + " is set: OpenMP may move its threads away from where '" +
                              plan.bind.origin + "' puts them");
    }
  }
}

Setting<std::optional<Strategy>> asked_strategy(const LaunchRequest& request, const Personality& personality) {
  if (request.strategy.given()) return request.strategy;
  return {personality.strategy, Source::kDefault, {}};
}

std::size_t most_devices(const std::vector<DeviceChoice>& choices) {
  std::size_t most = 0;
  for (const DeviceChoice& choice : choices) most = std::max(most, choice.devices.size());
  return most;
}

/// A program that does not know of it would train with one device of many, without a word.
void add_notes(LaunchPlan& plan, const std::vector<DeviceChoice>& choices) {
  if (choices.front().is_own) {
    plan.notes.emplace_back("each rank was given GPUs of its own: LOCAL_RANK is 0 in all, as with --isolate-gpus");
  }
  if (!facts_of(plan.strategy.value).starts_ranks_from_code) return;
  const std::size_t devices = plan.nodes.front().devices.size();
  plan.notes.push_back(
      fmt::format("strategy '{}' starts one process a node; by lrun::launch() it has to start the {} of "
                  "its node itself",
                  text_of(plan.strategy.value), devices == 1 ? "rank" : fmt::format("{} ranks", devices)));
}

void warn(LaunchPlan& plan, std::string problem) {
  if (!problem.empty()) plan.warnings.push_back(std::move(problem));
}

void add_warnings(LaunchPlan& plan, const std::vector<DeviceChoice>& choices) {
  for (const DeviceChoice& choice : choices) {
    for (const std::string& line : choice.warnings) {
      if (std::find(plan.warnings.begin(), plan.warnings.end(), line) == plan.warnings.end()) {
        plan.warnings.push_back(line);
      }
    }
  }
  if (plan.personality.omp_threads == Personality::OmpThreads::kOne && plan.omp_num_threads == 1) {
    plan.warnings.emplace_back("OMP_NUM_THREADS is set to 1 for every worker: set it yourself for more threads");
  }
}

bool needs_gpus(const LaunchRequest& request, const Environment& environment) {
  using Kind = DeviceRequest::Kind;
  const std::optional<DeviceKind> accelerator = request.accelerator.value;
  const DeviceRequest& devices = request.devices.value;
  const DeviceRequest& workers = request.nproc_per_node.value;
  if (accelerator == DeviceKind::kCpu || accelerator == DeviceKind::kTpu) return false;
  // The driver is asked although they are hidden: the refusal is to say why there are none.
  const bool by_name = devices.needs_gpus() || devices.kind == Kind::kAuto || workers.needs_gpus();
  if (accelerator == DeviceKind::kGpu || by_name) return true;
  const auto visible = environment.get("CUDA_VISIBLE_DEVICES");
  const bool hidden = visible && (visible->empty() || *visible == "-1");
  return !hidden && (devices.given() || workers.kind != Kind::kCpuCount);
}

/// Numbers of processes that follow from the CPUs, and the threads of each, which may also be too many.
bool needs_cpus(const LaunchRequest& request, const Environment& environment) {
  using Kind = DeviceRequest::Kind;
  const Kind devices = request.devices.value.kind;
  const Kind workers = request.nproc_per_node.value.kind;
  return environment.get("OMP_NUM_THREADS") != "1" || request.bind.value != Binding::kNone || devices == Kind::kAuto ||
         devices == Kind::kAllGpus || workers == Kind::kAutoCount || workers == Kind::kCpuCount;
}

/// A program that a person has stopped looks like one that hangs.
void check_debug_rank(const LaunchRequest& request, int world_size) {
  const Setting<int>& rank = request.setup.debug_rank;
  if (!rank.given()) return;
  if (rank.value >= world_size) {
    throw UserError(fmt::format("'{} {}': there is no such rank", rank.origin, rank.value),
                    fmt::format("this run has the ranks 0 to {}", world_size - 1));
  }
  for (const Setting<Duration>* limit : {&request.hang_timeout, &request.start_timeout}) {
    if (limit->value == Duration::zero()) continue;
    throw UserError(fmt::format("'{}' would end the run while '{}' stops it", limit->origin, rank.origin),
                    "leave one of them out");
  }
}

/// A slip of the pen would else be a run without output.
void check_local_ranks(const OutputRequest& request, int workers) {
  const auto check = [workers](const std::string& origin, int local_rank) {
    if (local_rank < workers) return;
    throw UserError(fmt::format("'{}': there is no local rank {}", origin, local_rank),
                    workers == 1 ? "this run has only the local rank 0"
                                 : fmt::format("this run has the local ranks 0 to {}", workers - 1));
  };
  for (const Setting<RankStreams>* streams : {&request.redirects, &request.tee}) {
    for (const auto& [local_rank, which] : streams->value.by_rank) check(streams->origin, local_rank);
  }
  for (const int local_rank : request.local_ranks) {
    check("--local-ranks-filter", local_rank);
  }
}

/// torchrun shows then what it was told to hide, and so does lrun.
std::string redirects_problem(const LaunchRequest& request) {
  const Setting<RankStreams>& redirects = request.output.redirects;
  const bool names_any = redirects.value.all != 0 || !redirects.value.by_rank.empty();
  if (request.log_dir.value != "/dev/null" || !names_any || request.output.console.given()) return {};
  return "'" + redirects.origin + "' hides nothing: '" + request.log_dir.origin +
         "' switches off the files it writes to; '--output quiet' shows no output";
}

/// What a dry run has to say about PROGRAM; a real one ends with it.
std::string program_problem(const LaunchRequest& request, const ProgramFacts& program) {
  const bool wrapped = wrapper_of(request.setup.wrappers, -1) != nullptr;  // who knows where it looks
  if (request.dry_run == DryRun::kNo || request.module || wrapped || program.there) return {};
  return "PROGRAM '" + request.command.front() + "' is not there: this run would end with 127";
}

/// The same about launchers that would not know where to meet; whom lrun itself starts, it tells.
std::string meeting_problem(const LaunchRequest& request, const Allocation& allocation, const LaunchPlan& plan) {
  const bool known = !plan.rendezvous || !plan.rendezvous->host.empty();
  const bool told = nodes_to_start(request, allocation) > 0 || request.hosts.given() || request.hostfile.given();
  if (request.dry_run == DryRun::kNo || known || told) return {};
  return fmt::format(
      "nobody says where the launchers of {} nodes meet: this run would be refused without "
      "'--rdzv-endpoint HOST:{}'",
      plan.num_nodes, plan.rendezvous->etcd.empty() ? 29'500 : 2379);
}

}  // namespace

Questions questions_of(const LaunchRequest& asked, const Environment& environment) {
  const LaunchRequest request = with_tpu_settled(asked, environment);
  return {.gpus = needs_gpus(request, environment),
          .cpus = needs_cpus(request, environment),
          .topology = request.bind.value != Binding::kNone,
          .names = hosts_in(request.rendezvous),
          .manager = leaves_nodes_to_manager(request),
          .other_managers = leaves_anything_to_manager(request),
          .tpus = request.accelerator.value == DeviceKind::kTpu};
}

LaunchPlan make_plan(const LaunchRequest& asked, const Environment& environment, const Allocation& allocation,
                     const ProgramFacts& program, std::string run_id) {
  const LaunchRequest request = with_tpu_settled(asked, environment);
  const std::vector<AllocatedNode> nodes = nodes_of_run(request, allocation);
  const std::vector<DeviceChoice> choices = choose_all(request, allocation, nodes);
  check_tpu_mesh(nodes, choices);
  const std::optional<TaskPlace>& task = request.rendezvous.task;

  LaunchPlan plan;
  plan.run_id = std::move(run_id);
  plan.allocation = who_named(nodes.size(), request, allocation);
  plan.personality = personality_of(request.compat);
  plan.run_name = run_name(request, plan);
  plan.role = request.role;
  plan.num_nodes = task ? task->nodes : static_cast<int>(nodes.size());
  plan.accelerator = choices.front().accelerator;
  plan.devices = choices.front().asked;
  plan.strategy = choose_strategy(asked_strategy(request, plan.personality), static_cast<int>(most_devices(choices)),
                                  plan.num_nodes);
  check_program(plan.strategy, request, program);
  plan.watches_for_liblrun =
      facts_of(plan.strategy.value).needs_liblrun() && !request.of_liblrun && plan.personality.tells_progress;
  plan.process_group_backend =
      choose_backend(request.process_group_backend, plan.accelerator.value, plan.num_nodes, choices.front().gpu_vendor);

  std::vector<NodeDevices> layout;
  for (std::size_t i = 0; i < nodes.size(); ++i) layout.push_back({nodes[i].name, choices[i].devices});
  plan.nodes = layout_ranks(plan.strategy.value, layout);
  plan.world_size = plan.nodes.back().base_rank + static_cast<int>(plan.nodes.back().workers.size());
  if (task) place_task(*task, plan);

  choose_visibility(plan, choices, request, environment);
  plan.setup = request.setup;
  check_wrappers(plan.setup.wrappers, plan.world_size);
  check_debug_rank(request, plan.world_size);
  warn(plan, program_problem(request, program));
  for (std::string& warning : warn_about_missing(environment, plan.setup.environment)) {
    plan.warnings.push_back(std::move(warning));
  }
  plan.argv = worker_command(request, environment, program);
  add_local_rank(plan, request, plan.argv);
  plan.rank_0_hosts_store = rank_0_hosts_store(request, environment);
  choose_master(request, nodes.front(), plan);
  warn(plan, meeting_problem(request, allocation, plan));
  check_horovod(environment, request.dry_run != DryRun::kNo, plan);
  plan.seed = request.seed;
  plan.bind = request.bind;
  plan.log_dir = request.log_dir;
  plan.standard_input = request.standard_input;
  if (plan.personality.refuse_missing_ranks) {
    std::size_t most = 0;
    for (const NodePlan& node : plan.nodes) most = std::max(most, node.workers.size());
    check_local_ranks(request.output, static_cast<int>(most));
  }
  plan.output = decide_output(request.output, plan.personality, request.log_dir.value, environment);
  warn(plan, redirects_problem(request));
  plan.output.rank_on_terminal = plan.setup.debug_rank.value;
  plan.grace = grace_of(request, environment);
  plan.timeout = request.timeout;
  plan.start_timeout = request.start_timeout;
  plan.hang_timeout = request.hang_timeout;
  plan.hang_signal = request.hang_signal;
  plan.on_hang = request.on_hang;
  plan.stop_signals = choose_stop_signals(request.signals_to_handle, plan.personality, plan.warnings);
  plan.settle = request.settle;
  plan.settle_for_victims = request.settle.given() ? request.settle.value : kDefaultSettleForVictims;
  if (plan.personality.workers_may_start && !request.settle.given()) plan.settle_at_start = request.monitor_interval;
  plan.max_restarts = request.max_restarts;
  plan.restart_backoff = {request.restart_backoff.value.value_or(plan.personality.restart_backoff),
                          request.restart_backoff.source, request.restart_backoff.origin};
  if (task && nodes.front().cpus < allocation.cpus_given) keep_own_rank(*task, plan);  // its CPUs are its own
  plan.omp_num_threads = threads_per_worker(plan, nodes.front().cpus, environment);
  warn(plan, warn_about_crowded_cpus(plan, nodes.front().cpus, environment));
  warn(plan, warn_about_outer_run(request, environment));
  bind_all(plan, nodes, environment);
  if (task) keep_own_rank(*task, plan);
  add_warnings(plan, choices);
  add_notes(plan, choices);
  return plan;
}

}  // namespace lrun::launcher
