#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/managed_job.h"

namespace lrun::launcher {

/// A PyTorchJob of Kubeflow. RANK is the rank of the pod. PET_NNODES is the number of pods, which is unknown where it
/// is a range; without PET_NNODES, WORLD_SIZE is the number of pods. \throws UserError  as find_managed_job()
std::optional<ManagedJob> pytorch_job(const ManagerView& view);

/// A job of Volcano: from its pytorch plugin, else from this pod's place in the lists of masters and workers.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> volcano_job(const ManagerView& view);

/// A TPU pod of Google's Kubernetes: TPU_WORKER_HOSTNAMES lists all hosts, TPU_WORKER_ID is the index of this one.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> tpu_pod(const ManagerView& view);

/// A pod of an indexed Job or a JobSet. JOB_COMPLETION_INDEX is its rank; the number of pods is unknown. Where a
/// headless service gives names to pods, the name of pod 0 follows from this pod's name in /etc/hosts. \throws
/// UserError  as find_managed_job()
std::optional<ManagedJob> indexed_job(const ManagerView& view);

/// The name of pod 0, derived from pod `index`, which `hosts_file` calls 'train-2.train.default.svc.cluster.local
/// train-2': 'train-0.train.default.svc.cluster.local'. \return empty when `pod` has another index, or no service names
/// it.
std::string first_pod_of(std::string_view hosts_file, std::string_view pod, int index);

}  // namespace lrun::launcher
