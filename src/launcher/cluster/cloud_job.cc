// Reads the variables and files of SageMaker, Azure ML, Vertex AI and AWS Batch into a ManagedJob. find_managed_job()
// calls one reader after the other.
#include "cluster/cloud_job.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>

#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "cluster/mpi_job.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

constexpr const char* kResourceFile = "/opt/ml/input/config/resourceconfig.json";

/// The member of an object, or null.
const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

/// \return empty when `list` is not a list of names.
std::vector<std::string> host_names_in(const Json& list) {
  std::vector<std::string> names;
  if (!list.is_array()) return names;
  for (const Json& name : list) {
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::optional<HostPlace> place_among(std::vector<std::string> hosts, const std::string& current) {
  const auto found = std::find(hosts.begin(), hosts.end(), current);
  if (found == hosts.end()) return std::nullopt;
  const int place = static_cast<int>(found - hosts.begin());
  return HostPlace{std::move(hosts), place};
}

[[noreturn]] void refuse_unreadable(const std::string& what) {
  throw UserError(fmt::format("{} does not tell which of the hosts this is", what), kByHand);
}

/// A host's place, and the variable or file that gave it.
struct SageMakerPlace {
  HostPlace place;
  std::string by;
};

std::optional<SageMakerPlace> place_by_hosts(const Environment& environment) {
  const auto hosts = environment.get("SM_HOSTS");
  const auto current = environment.get("SM_CURRENT_HOST");
  if (!hosts || !current) return std::nullopt;
  auto place = place_among(host_names_in(Json::parse(*hosts, nullptr, false)), *current);
  if (!place) refuse_unreadable(fmt::format("'SM_HOSTS={}' with 'SM_CURRENT_HOST={}'", *hosts, *current));
  return SageMakerPlace{std::move(*place), "SM_HOSTS and SM_CURRENT_HOST"};
}

std::optional<SageMakerPlace> place_by_resources(const ManagerView& view) {
  const auto variable = view.environment.get("SM_RESOURCE_CONFIG");
  if (!variable && !view.environment.has("TRAINING_JOB_NAME")) return std::nullopt;
  const std::string text = variable ? *variable : view.read(kResourceFile);
  if (text.empty()) return std::nullopt;
  const std::string by = variable ? "SM_RESOURCE_CONFIG" : kResourceFile;
  auto place = parse_resource_config(text);
  if (!place) refuse_unreadable("'" + by + "'");
  return SageMakerPlace{std::move(*place), by};
}

/// Whether the variable has only the beginning of what Vertex AI writes. Such a job must not run as one of a single
/// host.
bool is_cut_off(std::string_view spec) {
  constexpr std::string_view kBeginning = R"({"cluster")";
  return spec.starts_with(kBeginning) && !Json::accept(spec);
}

constexpr int kMostPools = 16;  // Vertex AI has four

/// The run name: AWS Batch appends '#1' for node 1.
std::string without_node(const std::string& id) { return id.substr(0, id.find('#')); }

/// lrun needs one launcher per node. The PyTorch distribution of Azure may start one process per rank.
void check_one_a_node(const Environment& environment, const Reported<int>& nodes) {
  const Reported<int> processes = reported_count(environment, "WORLD_SIZE");
  if (processes.known() && processes.value > nodes.value) {
    throw UserError(
        fmt::format(
            "this Azure ML job starts {} processes on {} nodes, and each of them is an lrun that would start all "
            "workers of its node",
            processes.value, nodes.value),
        "set 'process_count_per_instance: 1' in the job's distribution");
  }
  if (!processes.known()) return;
  require_agreement("number of nodes", processes, nodes);
  require_agreement("node rank", reported_index(environment, "RANK"), reported_index(environment, "NODE_RANK"));
}

}  // namespace

std::optional<HostPlace> parse_resource_config(std::string_view json) {
  const Json config = Json::parse(json, nullptr, false);
  const Json& current = member(config, "current_host");
  if (!current.is_string()) return std::nullopt;
  return place_among(host_names_in(member(config, "hosts")), current.get<std::string>());
}

std::optional<HostPlace> parse_cluster_spec(std::string_view json) {
  const Json spec = Json::parse(json, nullptr, false);
  const Json& type = member(member(spec, "task"), "type");
  const Json& index = member(member(spec, "task"), "index");
  if (!type.is_string() || !index.is_number_unsigned()) return std::nullopt;
  HostPlace place;
  bool found = false;
  for (int pool = 0; pool < kMostPools; ++pool) {
    const std::string name = "workerpool" + std::to_string(pool);
    const std::vector<std::string> hosts = host_names_in(member(member(spec, "cluster"), name.c_str()));
    if (type.get_ref<const std::string&>() == name && index.get<std::uint64_t>() < hosts.size()) {
      place.place = static_cast<int>(place.hosts.size() + index.get<std::size_t>());
      found = true;
    }
    for (const std::string& host_and_port : hosts) {
      std::string_view port = host_and_port;
      const std::string_view host = cut(port, ':');
      if (place.hosts.empty()) place.port = whole_number<std::uint16_t>(port).value_or(0);
      place.hosts.emplace_back(host);
    }
  }
  return found ? std::optional(std::move(place)) : std::nullopt;
}

std::optional<ManagedJob> sagemaker_job(const ManagerView& view) {
  auto told = place_by_hosts(view.environment);
  const auto again = place_by_resources(view);
  if (!told && !again) return std::nullopt;
  if (told && again && !(told->place == again->place)) {
    throw UserError(told->by + " and " + again->by + " contradict each other",
                    std::string("unset one of them, or ") + kByHand);
  }
  if (!told) told = again;
  ManagedJob job;
  job.manager = "SageMaker";
  job.nodes = {static_cast<int>(told->place.hosts.size()), told->by};
  job.node_rank = {told->place.place, told->by};
  job.host = {told->place.hosts.front(), told->by};
  job.hosts = std::move(told->place.hosts);
  job.run_name = view.environment.get("TRAINING_JOB_NAME").value_or("");
  return job;
}

std::optional<ManagedJob> azure_job(const ManagerView& view) {
  const Environment& environment = view.environment;
  const Reported<int> nodes = reported_count(environment, "AZUREML_NODE_COUNT");
  if (!nodes.known()) return std::nullopt;
  std::optional<ManagedJob> job = mpi_job(view);
  const Reported<int> rank = reported_index(environment, "NODE_RANK");
  if (job) {
    require_agreement("node rank", job->node_rank, rank);
    require_agreement("number of nodes", job->nodes, nodes);
  } else if (rank.known()) {
    check_one_a_node(environment, nodes);
    job.emplace();
    job->nodes = nodes;
    job->node_rank = rank;
  } else {
    return std::nullopt;
  }
  job->manager = "Azure ML";
  if (!environment.has("MASTER_ADDR")) job->host = reported_text(environment, "AZ_BATCHAI_MPI_MASTER_NODE");
  job->run_name = environment.get("AZUREML_RUN_ID").value_or(job->run_name);
  return job;
}

std::optional<ManagedJob> vertex_job(const ManagerView& view) {
  const Reported<std::string> spec = reported_text(view.environment, "CLUSTER_SPEC");
  if (!spec.known()) return std::nullopt;
  if (is_cut_off(spec.value)) refuse_unreadable("'CLUSTER_SPEC' is cut off and");
  if (spec.value.find("workerpool") == std::string::npos) return std::nullopt;
  auto place = parse_cluster_spec(spec.value);
  if (!place) refuse_unreadable("'CLUSTER_SPEC'");
  ManagedJob job;
  job.manager = "Vertex AI";
  job.nodes = {static_cast<int>(place->hosts.size()), spec.by};
  job.node_rank = {place->place, spec.by};
  job.host = {place->hosts.front(), spec.by};
  if (place->port > 0) job.port = {place->port, spec.by};
  job.hosts = std::move(place->hosts);
  job.run_name = view.environment.get("CLOUD_ML_JOB_ID").value_or("");
  return job;
}

std::optional<ManagedJob> aws_batch_job(const ManagerView& view) {
  const Environment& environment = view.environment;
  const Reported<int> index = reported_index(environment, "AWS_BATCH_JOB_NODE_INDEX");
  const Reported<int> nodes = reported_count(environment, "AWS_BATCH_JOB_NUM_NODES");
  if (!index.known() || !nodes.known()) return std::nullopt;
  const int main = reported_index(environment, "AWS_BATCH_JOB_MAIN_NODE_INDEX").value;
  if (index.value >= nodes.value || main >= nodes.value) {
    throw UserError(
        fmt::format("this AWS Batch job reports node {} and main node {} of {} nodes", index.value, main, nodes.value),
        kByHand);
  }
  ManagedJob job;
  job.manager = "AWS Batch";
  job.nodes = nodes;
  job.node_rank = {(index.value - main + nodes.value) % nodes.value, index.by};
  job.host = reported_text(environment, "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS");
  if (job.node_rank.value == 0) job.host = {view.this_host, "this is the main node"};
  job.run_name = without_node(environment.get("AWS_BATCH_JOB_ID").value_or(""));
  return job;
}

}  // namespace lrun::launcher
