// Reads the variables of Kubernetes operators (PyTorchJob, Volcano, TPU pods, indexed Jobs) into a ManagedJob.
// find_managed_job() calls one reader after the other.
#include "cluster/kubernetes_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "cluster/managed_job.h"

namespace lrun::launcher {
namespace {

/// In a pod HOSTNAME is the pod's name, also where the container shares the network, and so the name, of its machine.
std::string pod_name(const ManagerView& view) {
  const Reported<std::string> name = reported_text(view.environment, "HOSTNAME");
  return name.known() ? name.value : view.this_host;
}

bool has_torch_variables(const Environment& environment) {
  constexpr std::array kNames{"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"};
  const auto tells = [&environment](const char* name) { return reported_text(environment, name).known(); };
  return !tells("LOCAL_RANK") && std::all_of(kNames.begin(), kNames.end(), tells);
}

/// The count in a variable that may also hold a range of nodes, or 'auto' for workers. Those are not reported.
Reported<int> reported_plain_count(const Environment& environment, const std::string& name) {
  const auto number = whole_number<int>(environment.get(name).value_or(""));
  return number && *number >= 1 ? reported_count(environment, name) : Reported<int>();
}

/// WORLD_SIZE of Kubeflow is the number of workers, PET_NNODES times PET_NPROC_PER_NODE. In old versions, and where the
/// latter is not a number, it is the number of nodes.
void check_world_size(const Environment& environment, const Reported<int>& nodes) {
  const Reported<int> workers = reported_count(environment, "WORLD_SIZE");
  const Reported<int> of_node = reported_plain_count(environment, "PET_NPROC_PER_NODE");
  const bool agree =
      of_node.known() ? workers.value == std::int64_t{nodes.value} * of_node.value : workers.value % nodes.value == 0;
  if (agree || workers.value == nodes.value) return;
  const std::string per_node = of_node.known() ? fmt::format(" with 'PET_NPROC_PER_NODE={}'", of_node.value) : "";
  throw UserError(
      fmt::format("'WORLD_SIZE={}' and 'PET_NNODES={}'{} contradict each other", workers.value, nodes.value, per_node),
      std::string("unset the wrong one, or ") + kByHand);
}

/// \param names  hosts, with commas between them
void append_hosts(std::vector<std::string>& hosts, std::string_view names) {
  while (!names.empty()) {
    const std::string_view host = trimmed(cut(names, ','));
    if (!host.empty()) hosts.emplace_back(host);
  }
}

/// True of 'job-worker-0.job' and 'job-worker-0'.
bool is_name_of(std::string_view host, const std::string& pod) { return host == pod || host.starts_with(pod + "."); }

/// This pod's place among `hosts`. \return unknown when it is not among them.
Reported<int> place_of(const std::string& pod, const std::vector<std::string>& hosts) {
  const auto found =
      std::find_if(hosts.begin(), hosts.end(), [&pod](const std::string& host) { return is_name_of(host, pod); });
  if (found == hosts.end()) return {};
  return {static_cast<int>(found - hosts.begin()), "the place of '" + pod + "' in VC_MASTER_HOSTS and VC_WORKER_HOSTS"};
}

}  // namespace

std::optional<ManagedJob> pytorch_job(const ManagerView& view) {
  const Environment& environment = view.environment;
  const bool counts_ranks = reported_text(environment, "PET_NNODES").known();
  const bool in_pod = reported_text(environment, "KUBERNETES_SERVICE_HOST").known() || counts_ranks;
  if (!in_pod || !has_torch_variables(environment)) return std::nullopt;
  ManagedJob job;
  job.manager = "PyTorchJob";
  job.replaces_nodes = true;
  job.node_rank = reported_index(environment, "RANK");
  job.nodes =
      counts_ranks ? reported_plain_count(environment, "PET_NNODES") : reported_count(environment, "WORLD_SIZE");
  if (counts_ranks && job.nodes.known()) check_world_size(environment, job.nodes);
  return job;
}

std::optional<ManagedJob> volcano_job(const ManagerView& view) {
  const Environment& environment = view.environment;
  if (!environment.has("VC_TASK_INDEX") && !environment.has("VK_TASK_INDEX")) return std::nullopt;
  ManagedJob job;
  job.manager = "Volcano";
  job.replaces_nodes = true;
  append_hosts(job.hosts, environment.get("VC_MASTER_HOSTS").value_or(""));
  append_hosts(job.hosts, environment.get("VC_WORKER_HOSTS").value_or(""));
  const Reported<int> place = place_of(pod_name(view), job.hosts);
  if (has_torch_variables(environment)) {
    job.nodes = reported_count(environment, "WORLD_SIZE");
    job.node_rank = reported_index(environment, "RANK");
    require_agreement("node rank", job.node_rank, place);
    return job;
  }
  if (!place.known()) return std::nullopt;
  job.nodes = {static_cast<int>(job.hosts.size()), "VC_MASTER_HOSTS and VC_WORKER_HOSTS"};
  job.node_rank = place;
  job.host = {job.hosts.front(), environment.has("VC_MASTER_HOSTS") ? "VC_MASTER_HOSTS" : "VC_WORKER_HOSTS"};
  return job;
}

std::optional<ManagedJob> tpu_pod(const ManagerView& view) {
  const Reported<int> rank = reported_index(view.environment, "TPU_WORKER_ID");
  const Reported<std::string> names = reported_text(view.environment, "TPU_WORKER_HOSTNAMES");
  if (!rank.known() || !names.known()) return std::nullopt;
  ManagedJob job;
  job.manager = "TPU pod";
  job.replaces_nodes = true;
  append_hosts(job.hosts, names.value);
  if (job.hosts.size() < 2) return std::nullopt;
  job.nodes = {static_cast<int>(job.hosts.size()), names.by};
  job.node_rank = rank;
  job.host = {job.hosts.front(), names.by};
  return job;
}

std::optional<ManagedJob> indexed_job(const ManagerView& view) {
  const Reported<int> index = reported_index(view.environment, "JOB_COMPLETION_INDEX");
  if (!index.known()) return std::nullopt;
  ManagedJob job;
  job.manager = "Kubernetes indexed Job";
  job.replaces_nodes = true;
  job.node_rank = index;
  const std::string pod = pod_name(view);
  const std::string first = first_pod_of(view.read("/etc/hosts"), pod, index.value);
  if (first.empty()) return job;
  job.run_name = first.substr(0, first.find('.'));
  job.host = {first, "the name of this pod, '" + pod + "', in /etc/hosts"};
  job.derives_host = true;
  return job;
}

std::string first_pod_of(std::string_view hosts_file, std::string_view pod, int index) {
  const std::string ending = "-" + std::to_string(index);
  if (!pod.ends_with(ending) || pod.size() == ending.size()) return {};
  const std::string beginning(pod.substr(0, pod.size() - ending.size()));
  while (!hosts_file.empty()) {
    std::string_view line = cut(hosts_file, '\n');
    line = cut(line, '#');
    while (!line.empty()) {
      const auto end = line.find_first_of(" \t\r");
      const std::string_view name = line.substr(0, end);
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
      if (name.size() > pod.size() + 1 && name.starts_with(pod) && name[pod.size()] == '.') {
        return beginning + "-0" + std::string(name.substr(pod.size()));
      }
    }
  }
  return {};
}

}  // namespace lrun::launcher
