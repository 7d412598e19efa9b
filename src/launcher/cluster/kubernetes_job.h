#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/managed_job.h"

namespace lrun::launcher {

/// A PyTorchJob of Kubeflow: RANK is the pod's, and so is WORLD_SIZE where PET_NNODES does not tell the number of pods,
/// which nobody does where that is a range.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> pytorch_job(const ManagerView& view);

/// A job of Volcano: by its pytorch plugin, else by this pod's place in the lists of masters and workers.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> volcano_job(const ManagerView& view);

/// A host of a TPU pod, as Google's Kubernetes tells it: TPU_WORKER_HOSTNAMES lists all, TPU_WORKER_ID is this one.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> tpu_pod(const ManagerView& view);

/// A pod of an indexed Job or a JobSet: JOB_COMPLETION_INDEX is its rank, and nobody tells how many there are. Where a
/// headless service gives the pods names, that of pod 0 follows from this pod's, which its /etc/hosts has.
/// \throws UserError  as find_managed_job()
std::optional<ManagedJob> indexed_job(const ManagerView& view);

/// The name of pod 0 beside pod `index`, which `hosts_file` calls 'train-2.train.default.svc.cluster.local train-2':
/// 'train-0.train.default.svc.cluster.local'. \return empty: `pod` has another index, or no name of a service.
std::string first_pod_of(std::string_view hosts_file, std::string_view pod, int index);

}  // namespace lrun::launcher
