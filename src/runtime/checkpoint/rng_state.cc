#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/stack.h>
#include <lrun/checkpoint.h>
#include <lrun/exchange.h>
#include <lrun/session.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <mutex>
#include <string>
#include <vector>

namespace lrun {
namespace {

/// Data is augmented on the CPU; dropout draws on the device of the model. Replicas take their seeds from the CPU's.
std::vector<at::Device> random_devices(const Session& session) {
  if (session.device().is_cpu()) return {at::kCPU};
  return {at::kCPU, session.device()};
}

/// The number of the device is left out: a rank may get another one of the same kind.
std::string name_of(at::Device device) { return "rng_state_" + at::DeviceTypeName(device.type(), /*lower_case=*/true); }

at::Tensor rng_state(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_rng_state(at::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

void save_rng_state(Session& session, torch::serialize::OutputArchive& archive) {
  for (const at::Device device : random_devices(session)) {
    archive.write(name_of(device), at::stack(all_gather(session.collectives(), rng_state(device))));
  }
}

bool load_rng_state(Session& session, torch::serialize::InputArchive& archive) {
  bool has_all = true;
  for (const at::Device device : random_devices(session)) {
    at::Tensor states;
    const bool fits =
        archive.try_read(name_of(device), states) && states.dim() == 2 && states.size(0) == session.world_size();
    if (fits) set_rng_state(device, states[session.rank()].cpu().clone());
    has_all = has_all && fits;
  }
  return has_all;
}

}  // namespace lrun
