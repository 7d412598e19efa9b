// From a LaunchRequest and an Allocation to a LaunchPlan: make_plan() at the end is the sequence of all decisions, each
// a function that reads what the ones before it have decided. main() calls it, through run_request().
#include "plan/make_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/user_error.h"
#include "plan/backend_choice.h"
#include "plan/cpu_binding.h"
#include "plan/crowded_cpus.h"
#include "plan/gpu_visibility.h"
#include "plan/grace_period.h"
#include "plan/horovod_environment.h"
#include "plan/host_place.h"
#include "plan/job_place.h"
#include "plan/local_caches.h"
#include "plan/master_choice.h"
#include "plan/omp_threads.h"
#include "plan/outer_run.h"
#include "plan/python_program.h"
#include "plan/rank_layout.h"
#include "plan/rendezvous_request.h"
#include "plan/run_nodes.h"
#include "plan/strategy_choice.h"
#include "plan/task_place.h"
#include "plan/tpu_choice.h"
#include "plan/worker_command.h"

namespace lrun::launcher {
namespace {

/// The inputs of all decisions. The request has the decision about TPUs already.
struct Inputs {
  const LaunchRequest& request;
  const Environment& environment;
  const Allocation& allocation;
  const ProgramFacts& program;
  const RunNodes& run;
};

void warn(LaunchPlan& plan, std::string problem) {
  if (!problem.empty()) plan.warnings.push_back(std::move(problem));
}

/// The name that workers see. torchrun gives the name 'none' to a run without one.
std::string run_name(const LaunchRequest& request, const LaunchPlan& plan) {
  const std::string& given = request.rdzv_id;
  if (request.standalone) return plan.run_id;
  if (plan.personality.run_name_defaults_to_none) return given.empty() ? "none" : given;
  return given.empty() || given == "none" ? plan.run_id : given;
}

void name_run(const Inputs& in, std::string run_id, LaunchPlan& plan) {
  const std::optional<TaskPlace>& task = in.request.rendezvous.task;
  plan.run_id = std::move(run_id);
  plan.allocation = in.run.description;
  plan.personality = personality_of(in.request.compat);
  plan.run_name = run_name(in.request, plan);
  plan.role = in.request.role;
  plan.num_nodes = task ? task->nodes : static_cast<int>(in.run.nodes.size());
}

void choose_work(const Inputs& in, LaunchPlan& plan) {
  const DeviceChoice& here = in.run.choices.front();
  Setting<std::optional<Strategy>> asked = in.request.strategy;
  if (!asked.given()) asked.value = plan.personality.strategy;
  plan.accelerator = here.accelerator;
  plan.accelerator_word = in.request.accelerator_word;
  plan.devices = here.asked;
  const bool by_list = plan.devices.given() && in.run.nodes.front().devices.given() && in.run.nodes.size() > 1;
  if (by_list) plan.devices.origin = in.allocation.source;
  plan.strategy = choose_strategy(asked, in.run.most_devices(), plan.num_nodes);
  check_program(plan.strategy, in.request, in.program);
  plan.watches_for_liblrun =
      facts_of(plan.strategy.value).needs_liblrun() && !in.request.of_liblrun && plan.personality.tells_progress;
  plan.process_group_backend =
      choose_backend(in.request.process_group_backend, plan.accelerator.value, plan.num_nodes, here.gpu_vendor);
}

/// Ranks follow from the strategy and the devices of all nodes, and the GPUs that each worker sees from its rank.
void lay_out(const Inputs& in, LaunchPlan& plan) {
  std::vector<NodeDevices> layout;
  for (std::size_t i = 0; i < in.run.nodes.size(); ++i) {
    layout.push_back({in.run.nodes[i].name, in.run.choices[i].devices});
  }
  plan.nodes = layout_ranks(plan.strategy.value, layout);
  plan.world_size = plan.nodes.back().base_rank + static_cast<int>(plan.nodes.back().workers.size());
  if (in.request.rendezvous.task) place_task(*in.request.rendezvous.task, plan);
  choose_visibility(plan, in.run.choices, in.request, in.environment);
}

/// A worker that a person has stopped in a debugger looks like one that hangs.
void check_debug_rank(const LaunchRequest& request, int world_size) {
  const Setting<int>& rank = request.setup.debug_rank;
  if (!rank.given()) return;
  if (rank.value >= world_size) {
    throw UserError(fmt::format("'{}': there is no such rank", as_written(rank)),
                    fmt::format("this run has the ranks 0 to {}", world_size - 1));
  }
  for (const Setting<Duration>* limit : {&request.hang_timeout, &request.start_timeout}) {
    if (limit->value == Duration::zero()) continue;
    throw UserError(
        fmt::format("'{}' would end the run while the debugger of '{}' stops it", limit->origin, rank.origin),
        "remove one of them");
  }
}

/// A module of Python would read any other program as Python. A container may have a file that is not here.
void check_python_modules(const LaunchRequest& request, const ProgramFacts& program) {
  if (is_file_of_python(request, program) || !program.there) return;
  for (const Wrapper& wrapper : request.setup.wrappers) {
    if (!runs_python_module(wrapper.words)) continue;
    throw UserError(fmt::format("'{}' runs a module of Python, which cannot run '{}': it is no script of Python",
                                wrapper.origin, request.command.front()),
                    "name the script: 'lrun … SCRIPT.py', 'lrun … -m MODULE' or 'lrun … python3 SCRIPT'");
  }
}

/// A run fails when PROGRAM is missing. A plan that is only printed gets a warning.
std::string program_problem(const LaunchRequest& request, const ProgramFacts& program) {
  const bool wrapped = wrapper_of(request.setup.wrappers, -1) != nullptr;  // a container may have the file
  if (request.dry_run == DryRun::kNo || request.module || wrapped || program.there) return {};
  if (names_hosts(request)) {
    return fmt::format("PROGRAM '{}' is not on this host; every host needs it", request.command.front());
  }
  return "PROGRAM '" + request.command.front() + "' does not exist: this run would fail with exit code 127";
}

/// The same of the Python that is to run PROGRAM.
std::string python_problem(const LaunchRequest& request, const std::optional<PythonChoice>& python) {
  const bool wrapped = wrapper_of(request.setup.wrappers, -1) != nullptr;
  if (request.dry_run == DryRun::kNo || wrapped || !python || python->is_there) return {};
  return fmt::format("Python '{}' ({}) cannot be executed here{}", python->program, python->reason,
                     names_hosts(request) ? "; every host needs it" : ": this run would fail");
}

/// A variable or a file may name one for other programs.
std::string problem_of_unused_python(const LaunchRequest& request) {
  if (request.python.source != Source::kFlag) return {};
  return fmt::format("'{}' changes nothing: '{}' is executed itself", as_written(request.python),
                     request.command.front());
}

/// A fork server forks one interpreter for all ranks, which executes PROGRAM and nothing else.
std::string reason_against_preload(const LaunchRequest& request, const LaunchPlan& plan) {
  const std::string& program = request.command.front();
  if (request.compat == Compat::kTorchrun) return "not under torchrun's name";
  if (!plan.setup.wrappers.empty()) return fmt::format("not with '{}'", plan.setup.wrappers.front().origin);
  if (plan.setup.debug_rank.given()) return fmt::format("not with '{}'", plan.setup.debug_rank.origin);
  if (!is_python(plan.argv.front()) && !plan.python) return fmt::format("'{}' is not started with Python", program);
  return parts_of_python(plan.argv).program.empty() ? fmt::format("'{}' has no program", program) : "";
}

void choose_preload(const LaunchRequest& request, LaunchPlan& plan) {
  if (!plan.setup.preload.given()) return;
  const std::string reason = reason_against_preload(request, plan);
  if (reason.empty()) return;
  warn(plan, fmt::format("'{}' is ignored: {}", plan.setup.preload.origin, reason));
  plan.setup.preload = {};
}

/// torchrun's workers have no such folder.
void choose_memory(const LaunchRequest& request, LaunchPlan& plan) {
  if (request.compat == Compat::kTorchrun && !plan.setup.memory.given()) plan.setup.memory.value.bytes = 0;
}

void prepare_workers(const Inputs& in, LaunchPlan& plan) {
  plan.setup = in.request.setup;
  for (const Wrapper& wrapper : plan.setup.wrappers) check_ranks(wrapper.ranks, wrapper.origin, plan.world_size);
  check_python_modules(in.request, in.program);
  check_debug_rank(in.request, plan.world_size);
  warn(plan, program_problem(in.request, in.program));
  for (std::string& warning : warn_about_changes(in.environment, plan.setup.environment)) {
    plan.warnings.push_back(std::move(warning));
  }
  plan.argv = worker_command(in.request, in.program);
  plan.python = python_of(in.request, in.program);
  warn(plan, plan.python ? plan.python->warning : problem_of_unused_python(in.request));
  warn(plan, python_problem(in.request, plan.python));
  add_local_rank(plan, in.request, plan.argv);  // needs isolate_gpus
  choose_preload(in.request, plan);
  choose_memory(in.request, plan);
  keep_caches_on_node(in.environment, in.allocation.nodes.front(), plan);
  plan.seed = in.request.seed;
}

/// torchrun has a variable for this, which its static backend ignores.
bool rank_0_hosts_store(const LaunchRequest& request, const Environment& environment) {
  const bool may = request.standalone || request.rendezvous.backend.value != RendezvousBackend::kStatic;
  return may && environment.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") == "1";
}

/// A run of several nodes fails without an endpoint. A plan that is only printed gets a warning, unless lrun starts the
/// launchers and so gives them an endpoint.
std::string endpoint_problem(const LaunchRequest& request, const Allocation& allocation, const LaunchPlan& plan) {
  const bool known = !plan.rendezvous || !plan.rendezvous->host.empty();
  const bool given_by_lrun = nodes_to_start(request, allocation) > 0 || names_hosts(request);
  if (request.dry_run == DryRun::kNo || known || given_by_lrun) return {};
  return fmt::format("no rendezvous endpoint for {} nodes: this run would need '--rdzv-endpoint HOST:{}'",
                     plan.num_nodes, plan.rendezvous->etcd.empty() ? kPortOfStatic : kPortOfEtcd);
}

/// Chooses the address of the workers' store, and with it the rendezvous of the launchers.
void place_store(const Inputs& in, LaunchPlan& plan) {
  plan.rank_0_hosts_store = rank_0_hosts_store(in.request, in.environment);
  choose_master(in.request, in.run.nodes.front(), plan);
  warn(plan, endpoint_problem(in.request, in.allocation, plan));
  check_horovod(in.environment, in.request.dry_run != DryRun::kNo, plan);  // needs the addresses
}

/// A rank that does not exist is a typing mistake, which would hide all output.
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
  for (const int local_rank : request.local_ranks) check("--local-ranks-filter", local_rank);
}

/// torchrun then prints the streams that it should hide, and so does lrun.
std::string redirects_problem(const LaunchRequest& request) {
  const Setting<RankStreams>& redirects = request.output.redirects;
  const bool names_any = redirects.value.all != 0 || !redirects.value.by_rank.empty();
  if (request.log_dir.value != "/dev/null" || !names_any || request.output.console.given()) return {};
  return "'" + redirects.origin + "' hides nothing: '" + request.log_dir.origin +
         "' switches off its files; '--output quiet' hides output";
}

void choose_output(const Inputs& in, LaunchPlan& plan) {
  const OutputRequest& output = in.request.output;
  plan.log_dir = in.request.log_dir;
  plan.standard_input = in.request.standard_input;
  if (plan.personality.refuse_missing_ranks) {
    std::size_t most = 0;
    for (const NodePlan& node : plan.nodes) most = std::max(most, node.workers.size());
    check_local_ranks(output, static_cast<int>(most));
  }
  for (const WatchRule& rule : output.watch) check_ranks(rule.ranks, rule.origin, plan.world_size);
  plan.output = decide_output(output, plan.personality, in.request.log_dir.value, in.environment);
  plan.output.rank_on_terminal = plan.setup.debug_rank.value;
  warn(plan, redirects_problem(in.request));
  if (plan.world_size > 1) warn(plan, warn_about_emptied_prefix(plan.output.prefix_template));
}

void choose_ends(const Inputs& in, LaunchPlan& plan) {
  // A culprit exits within this time once its connections are gone, and users do not notice it as a wait.
  constexpr Duration kSettleForVictims(250);
  const LaunchRequest& request = in.request;
  plan.grace = choose_grace_period(request, in.environment);
  plan.timeout = request.timeout;
  plan.start_timeout = request.start_timeout;
  plan.hang_timeout = request.hang_timeout;
  plan.hang_signal = request.hang_signal;
  plan.on_hang = request.on_hang.value;
  plan.stop_signals = choose_stop_signals(request.signals_to_handle, plan.personality, plan.warnings);
  plan.settle = request.settle;
  plan.settle_for_victims = request.settle.given() ? request.settle.value : kSettleForVictims;
  if (plan.personality.workers_may_start && !request.settle.given()) plan.settle_at_start = request.monitor_interval;
  plan.max_restarts = request.max_restarts;
  plan.restart_backoff = {request.restart_backoff.value.value_or(plan.personality.restart_backoff),
                          request.restart_backoff.source, request.restart_backoff.origin};
  plan.checkpoint_path = request.checkpoint_path;
  plan.notice = request.notice;
}

/// Binds the workers of every node. Where lrun sets OMP_NUM_THREADS, it then follows from the CPUs of each worker.
void bind_all(LaunchPlan& plan, const std::vector<AllocatedNode>& nodes, const Environment& environment) {
  if (plan.bind.value == Binding::kNone) return;
  const bool sets_threads = threads_follow_binding(plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    NodePlan& node = plan.nodes[i];
    for (std::string& line : bind_workers(plan.bind, nodes[i].topology, most_threads(node, nodes[i]), node)) {
      if (!node.name.empty()) plan.warnings.push_back(std::move(line));  // else it is this host's, told already
    }
    for (WorkerPlan& worker : node.workers) worker.omp_num_threads = sets_threads ? worker.omp_num_threads : 0;
  }
  if (sets_threads) plan.omp_num_threads = 0;
  for (const char* const name : {"GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    if (!environment.has(name)) continue;
    plan.warnings.push_back(std::string(name) + " is set: OpenMP may move its threads away from the CPUs of '" +
                            plan.bind.origin + "'");
  }
}

/// Divides the CPUs of each node among its workers.
void share_cpus(const Inputs& in, LaunchPlan& plan) {
  const int cpus = in.run.nodes.front().cpus;
  plan.bind = in.request.bind;
  plan.omp_num_threads = threads_per_worker(plan, cpus, in.environment);
  warn(plan, warn_about_threads(in.environment));
  warn(plan, warn_about_crowded_cpus(plan, cpus, in.environment));
  warn(plan, warn_about_outer_run(in.request, in.environment));
  bind_all(plan, in.run.nodes, in.environment);
}

/// Options that change nothing without another one.
void warn_about_lone_options(const Inputs& in, LaunchPlan& plan) {
  const LaunchRequest& request = in.request;
  const auto needs = [&plan](const std::string& option, const char* needed) {
    plan.warnings.push_back(fmt::format("'{}' changes nothing without '{}'", option, needed));
  };
  if (request.hang_timeout.value == Duration::zero()) {
    if (request.on_hang.source == Source::kFlag) needs("--on-hang", "--hang-timeout");
    if (request.hang_signal != HangSignal::kProgress) needs("--hang-signal", "--hang-timeout");
  }
  const Setting<std::optional<Duration>>& backoff = request.restart_backoff;
  const bool may_restart = plan.max_restarts.value > 0 || plan.rendezvous.has_value();
  if (backoff.source == Source::kFlag && !may_restart) needs(backoff.origin, "--max-restarts");
  const bool watches = request.hang_timeout.value != Duration::zero();
  if (watches && request.on_hang.value == OnHang::kRestart && !may_restart)
    needs("--on-hang restart", "--max-restarts");
  for (const WatchRule& rule : request.output.watch) {
    const bool restarts = rule.reaction == WatchReaction::kRestart && !may_restart;
    if (!restarts) continue;
    plan.warnings.push_back(fmt::format("'{} {}' stops the run: '--max-restarts' is 0", rule.origin, rule.text));
  }
  const Setting<std::optional<GroupBackend>>& backend = request.process_group_backend;
  const bool is_python = !request.of_liblrun && is_python_program(request, in.program);
  if (backend.source == Source::kFlag && is_python) {
    plan.warnings.push_back(fmt::format(
        "'{}' is for programs of liblrun; Python names its backend in init_process_group()", backend.origin));
  }
}

void add_warnings(const Inputs& in, LaunchPlan& plan) {
  warn_about_lone_options(in, plan);
  if (in.request.compat == Compat::kLrun) warn(plan, warn_about_shell_variables(plan.argv));
  for (const DeviceChoice& choice : in.run.choices) {
    for (const std::string& line : choice.warnings) {
      const bool is_new = std::find(plan.warnings.begin(), plan.warnings.end(), line) == plan.warnings.end();
      if (is_new) plan.warnings.push_back(line);
    }
  }
  if (plan.personality.omp_threads == Personality::OmpThreads::kOne && plan.omp_num_threads == 1) {
    plan.warnings.emplace_back("OMP_NUM_THREADS is set to 1 for every worker; set it yourself for more threads");
  }
}

void add_notes(const Inputs& in, LaunchPlan& plan) {
  if (in.request.dry_run != DryRun::kNo && (plan.num_nodes > 1 || names_hosts(in.request))) {
    plan.notes.emplace_back("planned with this host's GPUs and CPUs; each node uses its own");
  }
  // Slurm tells neither variables nor scontrol whether it is so: a warning could be wrong.
  const bool is_explained = in.request.dry_run != DryRun::kNo || in.request.verbosity > 0;
  if (in.request.spares.value > 0 && is_explained && in.allocation.source.starts_with("Slurm")) {
    plan.notes.emplace_back(
        "a spare can replace a lost node only in a job that was submitted with '--no-kill': Slurm ends any other");
  }
  if (in.run.choices.front().is_own) {
    plan.notes.emplace_back("each rank has GPUs of its own, so LOCAL_RANK is 0 in all of them, as with --isolate-gpus");
  }
  const std::string gpus = in.environment.get("CUDA_VISIBLE_DEVICES").value_or("-1");
  if (plan.accelerator.value == DeviceKind::kCpu && !plan.accelerator.given() && gpus != "-1" && !gpus.empty()) {
    plan.notes.push_back("CUDA_VISIBLE_DEVICES is '" + gpus + "', but there is no GPU here: workers run on CPUs");
  }
  if (!facts_of(plan.strategy.value).starts_ranks_from_code) return;
  // A program that does not call launch() would silently train with one of many devices.
  const std::size_t devices = plan.nodes.front().devices.size();
  plan.notes.push_back(
      fmt::format("strategy '{}' starts one process per node, which has to start the {} of its node itself with "
                  "lrun::launch()",
                  text_of(plan.strategy.value), devices == 1 ? "rank" : fmt::format("{} ranks", devices)));
}

}  // namespace

LaunchPlan make_plan(const LaunchRequest& asked, const Environment& environment, const Allocation& allocation,
                     const ProgramFacts& program, std::string run_id) {
  const LaunchRequest request = with_tpu_settled(asked, environment);
  const RunNodes run = choose_nodes(request, allocation);
  const Inputs in{request, environment, allocation, program, run};
  LaunchPlan plan;
  name_run(in, std::move(run_id), plan);
  choose_work(in, plan);
  lay_out(in, plan);
  prepare_workers(in, plan);
  place_store(in, plan);
  choose_output(in, plan);
  choose_ends(in, plan);

  // A launcher of one rank plans its whole node up to here, because the place of its rank depends on the others. CPUs
  // that the ranks of a node have together are divided before the other ranks are dropped. CPUs that Slurm gave to this
  // launcher only are not divided, so there the other ranks are dropped first.
  const std::optional<TaskPlace>& task = request.rendezvous.task;
  const bool has_own_cpus = task && run.nodes.front().cpus < allocation.cpus_given;
  if (has_own_cpus) keep_own_rank(*task, plan);
  share_cpus(in, plan);
  if (task && !has_own_cpus) keep_own_rank(*task, plan);

  add_warnings(in, plan);
  add_notes(in, plan);
  return plan;
}

}  // namespace lrun::launcher
