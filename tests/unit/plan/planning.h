#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/user_error.h"
#include "cluster/allocation.h"
#include "cluster/user_hosts.h"
#include "plan/job_place.h"
#include "plan/launch_request.h"
#include "plan/make_plan.h"
#include "plan/questions.h"
#include "plan/worker_environment.h"

namespace lrun::launcher {

/// The common inputs of the tests of this folder.

inline Environment environment_with(std::initializer_list<std::pair<const std::string, std::string>> variables) {
  return Environment(std::map<std::string, std::string, std::less<>>(variables));
}

inline Setting<std::string> flag(const std::string& origin, const std::string& value) {
  return {value, Source::kFlag, origin};
}

inline Setting<DeviceRequest> devices_flag(const std::string& text, const std::string& origin = "--devices") {
  return {std::get<DeviceRequest>(parse_devices(text, kMostSlots)), Source::kFlag, origin};
}

/// \param text  a number, 'auto', 'cpu', 'gpu' or 'xpu'
inline Setting<DeviceRequest> workers_flag(const std::string& text, const std::string& origin = "--nproc-per-node") {
  using Kind = DeviceRequest::Kind;
  for (const Kind kind : {Kind::kAutoCount, Kind::kCpuCount, Kind::kGpuCount, Kind::kXpuCount}) {
    if (text == text_of(DeviceRequest{kind})) return {DeviceRequest{kind}, Source::kFlag, origin};
  }
  return {DeviceRequest{Kind::kProcesses, std::stoi(text)}, Source::kFlag, origin};
}

inline Setting<std::optional<Strategy>> strategy_flag(std::string_view name) {
  return {find_strategy(name).value(), Source::kFlag, "--strategy"};
}

inline Setting<std::optional<DeviceKind>> accelerator_flag(DeviceKind kind) {
  return {kind, Source::kFlag, "--accelerator"};
}

inline Setting<RendezvousBackend> backend_flag(std::string_view name) {
  return {value_in(kRendezvousBackends, name).value(), Source::kFlag, "--rdzv-backend"};
}

inline Setting<HostList> hosts_flag(const std::string& text) {
  return {{text, parse_host_list(text, "-H " + text)}, Source::kFlag, "-H"};
}

inline LaunchRequest request_for(const std::string& devices) {
  LaunchRequest request;
  request.command = {"./train", "--lr", "0.1"};
  if (!devices.empty()) request.devices = devices_flag(devices);
  return request;
}

inline LaunchRequest request_for_nodes(const std::string& devices, int nodes) {
  LaunchRequest request = request_for(devices);
  request.num_nodes = {nodes, Source::kFlag, "--num_nodes"};
  return request;
}

inline LaunchRequest request_for_processes(const std::string& nproc_per_node) {
  LaunchRequest request = request_for("");
  if (!nproc_per_node.empty()) request.nproc_per_node = workers_flag(nproc_per_node);
  return request;
}

inline std::vector<Host> hosts_of(const LaunchRequest& request) { return request.hosts.value.hosts; }

inline Setting<Endpoint> endpoint_of(std::string host, std::optional<int> port) {
  return {{std::move(host), port}, Source::kFlag, "--rdzv-endpoint"};
}

inline AllocatedNode cpu_node(int cpus = 16, const std::string& name = "host") {
  return {name, cpus, {GpuAnswer::kNoLibrary, {}, "there is no libnvidia-ml.so.1"}};
}

inline AllocatedNode gpu_node(int gpus, const std::string& name = "host") {
  AllocatedNode node{name, 16, {GpuAnswer::kCounted, {}, ""}};
  for (int i = 0; i < gpus; ++i) {
    node.gpus.gpus.push_back({i, "GPU-" + std::to_string(i) + "aaa", std::to_string(i), false});
  }
  return node;
}

inline AllocatedNode tpu_node(int chips, int cores_per_chip = 1) {
  AllocatedNode node = cpu_node();
  node.tpus = {.asked = true, .chips = chips, .cores_per_chip = cores_per_chip};
  return node;
}

inline LaunchRequest under_tpu(const std::string& devices) {
  LaunchRequest request = request_for(devices);
  request.strategy = strategy_flag("tpu");
  return request;
}

inline LaunchPlan plan_of(const LaunchRequest& request, const AllocatedNode& node,
                          const Environment& environment = Environment()) {
  return make_plan(request, environment, {{node}, "this host", "nothing names other nodes"}, {true, ""}, "demo");
}

inline std::string ids_of(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId& device : devices) {
    text += (text.empty() ? "" : ",") + (device.kind == DeviceKind::kGpu ? "gpu" + device.id : "cpu" + device.id);
  }
  return text;
}

/// All variables of a worker as it finds them.
inline std::map<std::string, std::string> variables_of(const WorkerEnvironment& environment, const WorkerPlan& worker) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : environment.shared()) {
    const auto equals = entry.find('=');
    variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  for (const auto& [name, value] : environment.of(worker)) variables[name] = value;
  return variables;
}

/// The text and the hint of the UserError that `action` throws: 'what | hint'; empty when it throws none.
template <class Action>
std::string refusal_of(Action action) {
  try {
    action();
  } catch (const UserError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

/// Of which this launcher is that of node `node_rank`, whatever that is.
inline Allocation step_of_three(int node_rank) {
  return {{cpu_node(16, "here"), cpu_node(16, "n1"), cpu_node(16, "n3")},
          "Slurm step 12.0",
          "SLURM_STEP_ID, SLURM_STEP_NODELIST",
          JobPlace{"slurm-12.0", "n1", 15'012, node_rank}};
}

/// The place that the manager's job gives.
inline LaunchPlan plan_in(const Allocation& allocation, const LaunchRequest& request,
                          const Environment& environment = Environment()) {
  return make_plan(placed(request, allocation), environment, allocation, {true, ""}, "demo");
}

}  // namespace lrun::launcher
