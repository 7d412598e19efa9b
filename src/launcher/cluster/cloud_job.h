#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/managed_job.h"

namespace lrun::launcher {

/// A training job of SageMaker: from SM_HOSTS and SM_CURRENT_HOST, else SM_RESOURCE_CONFIG, else the file that
/// SageMaker writes. Each of them lists the hosts in the order of their names as text. \throws UserError  as
/// find_managed_job()
std::optional<ManagedJob> sagemaker_job(const ManagerView& view);

/// A job of Azure ML: from NODE_RANK of its PyTorch distribution, or the tasks of its MPI distribution.
/// \throws UserError  as find_managed_job(), or the job starts several processes per node.
std::optional<ManagedJob> azure_job(const ManagerView& view);

/// A custom job of Vertex AI: from CLUSTER_SPEC, worker pool after worker pool.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> vertex_job(const ManagerView& view);

/// A multi-node job of AWS Batch. The main node is node rank 0.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> aws_batch_job(const ManagerView& view);

/// A node's place in a list of hosts.
struct HostPlace {
  std::vector<std::string> hosts;  ///< in rank order
  int place = 0;
  int port = 0;  ///< 0: unknown

  bool operator==(const HostPlace&) const = default;
};

/// SageMaker's '{"current_host": "algo-1", "hosts": ["algo-1", "algo-2"]}'. \return empty when `json` is not of this
/// form.
std::optional<HostPlace> parse_resource_config(std::string_view json);

/// Vertex AI's '{"cluster": {"workerpool0": ["a:2222"], …}, "task": {"type": "workerpool0", "index": 0}}'.
/// \return empty when `json` is not of this form, or lacks the task.
std::optional<HostPlace> parse_cluster_spec(std::string_view json);

}  // namespace lrun::launcher
