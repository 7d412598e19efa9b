// The plan for programs: --dry-run=json. show_plan() calls show_plan_json().
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "plan/cpu_binding.h"
#include "plan/known_master.h"
#include "plan/show_plan.h"
#include "plan/worker_command.h"
#include "plan/worker_environment.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

const char* name_of(Source source) {
  switch (source) {
    case Source::kDefault:
      return "default";
    case Source::kScheduler:
      return "scheduler";
    case Source::kConfig:
      return "file";
    case Source::kEnvironment:
      return "environment";
    case Source::kFlag:
      return "flag";
  }
  return "unknown";
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
Json json_of(const Setting<T>& setting, Json value) {
  return {{"value", std::move(value)}, {"source", name_of(setting.source)}, {"origin", setting.origin}};
}

template <class T>
Json json_of(const Setting<T>& setting) {
  return json_of(setting, Json(text_of(setting.value)));
}

Json json_of(const std::vector<DeviceId>& devices) {
  Json list = Json::array();
  for (const DeviceId& device : devices) {
    list.push_back({{"kind", text_of(device.kind)}, {"id", device.id}});
  }
  return list;
}

/// Values that only the start decides are null: address and port of the store, and the place of the error file.
void blank_the_undecided(Json& environment, const LaunchPlan& plan, const KnownMaster& master) {
  for (const char* const name : {"MASTER_PORT", "HOROVOD_GLOO_RENDEZVOUS_PORT"}) {
    if (master.port == 0 && environment.contains(name)) environment[name] = nullptr;
  }
  for (const char* const name : {"MASTER_ADDR", "HOROVOD_GLOO_RENDEZVOUS_ADDR"}) {
    if (master.address.empty() && environment.contains(name)) environment[name] = nullptr;
  }
  if (plan.setup.memory.value.has_folder()) environment["LRUN_MEMORY_DIR"] = nullptr;
  if (plan.log_dir.value != "/dev/null") environment["TORCHELASTIC_ERROR_FILE"] = nullptr;
}

Json json_of(const LaunchPlan& plan, const NodePlan& node, const WorkerEnvironment& environment,
             const WorkerPlan& worker, const KnownMaster& master) {
  Json variables = Json::object();
  for (const auto& [name, value] : environment.of(worker)) variables[name] = value;
  for (const auto& [name, value] : environment.shared_contract()) variables[name] = value;
  blank_the_undecided(variables, plan, master);
  return {{"rank", worker.rank},
          {"local_rank", worker.local_rank},
          {"devices", json_of(worker.devices)},
          {"cpus", worker.cpus.empty() ? Json() : Json(worker.cpus)},
          {"argv", command_of(plan, node, worker, 0)},
          {"environment", std::move(variables)}};
}

Json json_of(const LaunchPlan& plan, const NodePlan& node, const Environment& base) {
  const KnownMaster master(plan);
  const WorkerEnvironment environment(plan, node, base, {master.port, master.address, 0, ""});
  Json workers = Json::array();
  for (const WorkerPlan& worker : node.workers) workers.push_back(json_of(plan, node, environment, worker, master));
  return {{"node_rank", node.node_rank},      {"name", node.name.empty() ? Json() : Json(node.name)},
          {"base_rank", node.base_rank},      {"local_world_size", node.local_world_size()},
          {"devices", json_of(node.devices)}, {"removed_variables", environment.removed()},
          {"workers", std::move(workers)}};
}

Json json_of(const std::vector<WatchRule>& rules) {
  Json list = Json::array();
  for (const WatchRule& rule : rules) list.push_back({{"rule", rule.text}, {"origin", rule.origin}});
  return list;
}

Json json_of(const std::optional<PythonChoice>& python) {
  if (!python) return {};
  return {{"program", python->program},
          {"path", python->path.empty() ? Json() : Json(python->path)},
          {"origin", python->reason}};
}

Json json_of(const WorkerSetup& setup) {
  Json environment = Json::object();
  for (const EnvironmentChange& change : setup.environment) {
    if (change.kind == EnvironmentChange::Kind::kSet) environment[change.name] = change.value;
    if (change.kind == EnvironmentChange::Kind::kUnset) environment[change.name] = nullptr;
  }
  Json limits = Json::array();
  for (const ResourceLimit& limit : setup.limits) limits.push_back(text_of(limit));
  Json wrappers = Json::array();
  for (const Wrapper& wrapper : setup.wrappers) {
    wrappers.push_back({{"words", wrapper.words}, {"ranks", wrapper.ranks}, {"origin", wrapper.origin}});
  }
  return {{"chdir", setup.folder.given() ? Json(setup.folder.value) : Json()},
          {"environment", std::move(environment)},
          {"limits", std::move(limits)},
          {"core_dumps", setup.core_dumps},
          {"wrappers", std::move(wrappers)},
          {"preload", setup.preload.given() ? Json(setup.preload.value) : Json()},
          {"memory_dir", setup.memory.value.bytes ? Json(*setup.memory.value.bytes) : Json()},
          {"debug_rank", setup.debug_rank.given() ? Json(setup.debug_rank.value) : Json()}};
}

Json json_of(const Personality& personality) {
  return {{"output", personality.output == Personality::Output::kPrefixed ? "prefixed" : "inherited"},
          {"file_per_rank", personality.file_per_rank},
          {"stdin", personality.standard_input == Personality::Stdin::kNull ? "null" : "inherited"},
          {"omp_threads", personality.omp_threads == Personality::OmpThreads::kFairShare ? "fair share" : "one"},
          {"failure", personality.failure == Personality::Failure::kVerdict ? "verdict" : "torchrun summary"},
          {"repeats_identical", personality.repeats_identical},
          {"every_program_is_python", personality.every_program_is_python},
          {"verbs", personality.verbs}};
}

Json json_of(const RendezvousPlan& plan) {
  Json etcd = Json::array();
  for (const Endpoint& endpoint : plan.etcd) etcd.push_back({{"host", endpoint.host}, {"port", *endpoint.port}});
  Json tls;
  if (plan.etcd_tls) {
    tls = {{"cacert", plan.etcd_tls->authorities}, {"cert", plan.etcd_tls->certificate}, {"key", plan.etcd_tls->key}};
  }
  return {{"backend", text_of(plan.backend)},
          {"host", plan.host},
          {"port", plan.port},
          {"etcd", std::move(etcd)},
          {"etcd_folder", plan.etcd_folder},
          {"etcd_tls", std::move(tls)},
          {"node_rank", plan.node_rank ? Json(*plan.node_rank) : Json()},
          {"node_rank_from", plan.node_rank_from},
          {"host_from", plan.host_from},
          {"min_nodes", plan.min_nodes},
          {"max_nodes", plan.max_nodes},
          {"spares", plan.spares},
          {"join_timeout_ms", plan.join_timeout.count()},
          {"last_call_ms", plan.last_call.count()},
          {"heartbeat_ms", plan.heartbeat.count()}};
}

}  // namespace

std::string show_plan_json(const LaunchPlan& plan, const Environment& environment) {
  Json nodes = Json::array();
  for (const NodePlan& node : plan.nodes) nodes.push_back(json_of(plan, node, environment));
  const KnownMaster master(plan);
  const Json json = {
      {"schema", kSchema},
      {"run_id", plan.run_id},
      {"allocation", plan.allocation},
      {"personality", json_of(plan.personality)},
      {"argv", plan.argv},
      {"python", json_of(plan.python)},
      {"setup", json_of(plan.setup)},
      {"strategy", json_of(plan.strategy)},
      {"accelerator", json_of(plan.accelerator)},
      {"process_group_backend", json_of(plan.process_group_backend)},
      {"devices", json_of(plan.devices)},
      {"num_nodes", plan.num_nodes},
      {"world_size", plan.world_size},
      {"master_addr", master.address.empty() ? Json() : Json(master.address)},
      {"master_port", master.port == 0 ? Json() : Json(master.port)},
      {"rendezvous", plan.rendezvous ? json_of(*plan.rendezvous) : Json()},
      {"seed", json_of(plan.seed, or_null(plan.seed.value))},
      {"output", json_of(plan.output.console, name_of_console(plan.output))},
      {"watch", json_of(plan.output.watch)},
      {"metrics", plan.output.metrics.value.is_given() ? json_of(plan.output.metrics) : Json()},
      {"log_dir", json_of(plan.log_dir)},
      {"grace_ms", json_of(plan.grace, plan.grace.value.count())},
      {"settle_ms", json_of(plan.settle, plan.settle.value.count())},
      {"settle_for_victims_ms", plan.settle_for_victims.count()},
      {"settle_at_start_ms", plan.settle_at_start.count()},
      {"timeout_ms", json_of(plan.timeout, plan.timeout.value.count())},
      {"start_timeout_ms", json_of(plan.start_timeout, plan.start_timeout.value.count())},
      {"hang_timeout_ms", json_of(plan.hang_timeout, plan.hang_timeout.value.count())},
      {"stop_signals", plan.stop_signals.names},
      {"max_restarts", json_of(plan.max_restarts, plan.max_restarts.value)},
      {"restart_backoff_ms", json_of(plan.restart_backoff, plan.restart_backoff.value.count())},
      {"checkpoint_path", json_of(plan.checkpoint_path)},
      {"notice", plan.notice.value.is_given() ? json_of(plan.notice) : Json()},
      {"omp_num_threads", plan.omp_num_threads == 0 ? Json() : Json(plan.omp_num_threads)},
      {"isolate_gpus", plan.isolate_gpus},
      {"bind", json_of(plan.bind, text_of(plan.bind.value))},
      {"warnings", plan.warnings},
      {"nodes", std::move(nodes)},
  };
  // Arguments and host names are bytes; what is not UTF-8 in them is shown as U+FFFD.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lrun::launcher
