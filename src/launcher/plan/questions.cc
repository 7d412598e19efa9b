#include "plan/questions.h"

#include "plan/job_place.h"
#include "plan/local_caches.h"
#include "plan/tpu_choice.h"

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;

bool needs_gpus(const LaunchRequest& request, const Environment& environment) {
  const std::optional<DeviceKind> accelerator = request.accelerator.value;
  const DeviceRequest& devices = request.devices.value;
  const DeviceRequest& workers = request.nproc_per_node.value;
  if (accelerator == DeviceKind::kCpu || accelerator == DeviceKind::kTpu) return false;
  // GPUs that were asked for are looked for even where they are hidden: the refusal says why there are none.
  const bool wants_gpus = devices.needs_gpus() || devices.kind == Kind::kAuto || workers.needs_gpus();
  if (accelerator == DeviceKind::kGpu || wants_gpus) return true;
  const auto visible = environment.get("CUDA_VISIBLE_DEVICES");
  const bool hidden = visible && (visible->empty() || *visible == "-1");
  return !hidden && (devices.given() || workers.kind != Kind::kCpuCount);
}

/// The number of CPUs decides how many threads a worker has, and for some requests how many workers there are.
bool needs_cpus(const LaunchRequest& request, const Environment& environment) {
  const Kind devices = request.devices.value.kind;
  const Kind workers = request.nproc_per_node.value.kind;
  return environment.get("OMP_NUM_THREADS") != "1" || request.bind.value != Binding::kNone || devices == Kind::kAuto ||
         devices == Kind::kAllGpus || workers == Kind::kAutoCount || workers == Kind::kCpuCount;
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
          .tpus = request.accelerator.value == DeviceKind::kTpu,
          .folders = cache_folders(request, environment)};
}

}  // namespace lrun::launcher
