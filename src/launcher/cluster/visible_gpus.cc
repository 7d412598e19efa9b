// Applies CUDA_VISIBLE_DEVICES and its likes to the GPUs of the machine, by the rules of the vendors' runtimes.
// local_host() calls it with the inventory of find_gpus().
#include "cluster/visible_gpus.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/split.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kAnyBlanks = " \t\n\r\f\v";

template <class Matches>
std::optional<Gpu> first_that(const std::vector<Gpu>& gpus, Matches matches) {
  const auto found = std::find_if(gpus.begin(), gpus.end(), matches);
  return found == gpus.end() ? std::nullopt : std::optional(*found);
}

/// The GPU that a number means. The number is the name that the GPU has before the variable applies. Instances are
/// named by their UUIDs, and the number of a GPU in MIG mode means the first of them.
std::optional<Gpu> find_by_number(const std::vector<Gpu>& gpus, std::string_view entry) {
  int number = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error != std::errc() || end != entry.data() + entry.size()) return std::nullopt;
  const std::string name = std::to_string(number);
  if (auto gpu = first_that(gpus, [&](const Gpu& candidate) { return candidate.visible_as == name; })) return gpu;
  return first_that(gpus, [&](const Gpu& candidate) { return candidate.is_instance() && candidate.index == number; });
}

/// The one GPU, or the first instance of the one GPU, whose UUID begins with `entry`.
std::optional<Gpu> find_by_uuid(const std::vector<Gpu>& gpus, const std::string& entry) {
  const bool of_instance = entry.starts_with("MIG-");
  if (!of_instance && !entry.starts_with("GPU-")) return std::nullopt;
  const auto uuid_of = [&](const Gpu& gpu) { return gpu.is_instance() && !of_instance ? gpu.gpu_uuid : gpu.uuid; };
  const auto matches = [&](const Gpu& gpu) { return uuid_of(gpu).starts_with(entry); };
  std::optional<Gpu> found = first_that(gpus, matches);
  if (found && std::any_of(gpus.begin(), gpus.end(),
                           [&](const Gpu& gpu) { return matches(gpu) && uuid_of(gpu) != uuid_of(*found); })) {
    return std::nullopt;
  }
  // Older drivers do not list instances. A user who gives the UUID of one has it.
  const bool none_listed = std::none_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) { return gpu.is_instance(); });
  if (!found && of_instance && none_listed && !gpus.empty()) return Gpu{-1, entry, entry, false};
  return found;
}

std::optional<Gpu> find_gpu(const std::vector<Gpu>& gpus, const std::string& entry, GpuVendor vendor) {
  const bool tile = vendor == GpuVendor::kIntel && entry.find('.') != std::string::npos;
  std::optional<Gpu> gpu =
      find_by_number(gpus, std::string_view(entry).substr(0, tile ? entry.find('.') : entry.size()));
  if (!gpu) gpu = find_by_uuid(gpus, entry);
  if (gpu && !gpu->is_instance()) gpu->visible_as = entry;
  return gpu;
}

/// Whether the device is in the list already. Another tile of a GPU is another device.
bool has_gpu(const std::vector<Gpu>& gpus, const Gpu& gpu, GpuVendor vendor) {
  return std::any_of(gpus.begin(), gpus.end(), [&](const Gpu& other) {
    return other.index == gpu.index && other.uuid == gpu.uuid &&
           (vendor != GpuVendor::kIntel || other.visible_as == gpu.visible_as);
  });
}

/// The GPUs of `machine` that one variable leaves visible.
GpuInventory under(GpuInventory machine, const std::string& variable, const Environment& environment) {
  const std::optional<std::string> value = environment.get(variable);
  if (!value || machine.gpus.empty()) return machine;
  GpuInventory seen{machine.answer, {}, machine.detail, machine.vendor};
  for (const std::string& entry : split_visible_devices(*value)) {
    const std::optional<Gpu> gpu = find_gpu(machine.gpus, entry, machine.vendor);
    if (!gpu) break;
    if (has_gpu(seen.gpus, *gpu, machine.vendor)) {  // the runtimes then see no GPU at all
      seen.gpus.clear();
      break;
    }
    seen.gpus.push_back(*gpu);
  }
  if (seen.gpus.empty()) seen.detail = variable + "='" + *value + "' hides all GPUs";
  return seen;
}

GpuInventory visible_amd_gpus(GpuInventory machine, const Environment& environment) {
  GpuInventory seen = under(std::move(machine), "ROCR_VISIBLE_DEVICES", environment);
  // HIP counts what ROCR leaves.
  for (std::size_t i = 0; i < seen.gpus.size(); ++i) seen.gpus[i].visible_as = std::to_string(i);
  const bool by_hip = environment.has("HIP_VISIBLE_DEVICES");
  return under(std::move(seen), by_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES", environment);
}

}  // namespace

const char* visibility_variable(GpuVendor vendor) {
  switch (vendor) {
    case GpuVendor::kNvidia:
      break;
    case GpuVendor::kAmd:
      return "HIP_VISIBLE_DEVICES";
    case GpuVendor::kIntel:
      return "ZE_AFFINITY_MASK";
  }
  return "CUDA_VISIBLE_DEVICES";
}

std::vector<std::string> split_visible_devices(const std::string& value) {
  std::vector<std::string> entries;
  if (trimmed(value, kAnyBlanks).empty()) return entries;
  for (const std::string& field : fields_of(value)) entries.emplace_back(trimmed(field, kAnyBlanks));
  return entries;
}

GpuInventory visible_gpus(GpuInventory machine, const Environment& environment) {
  if (machine.vendor == GpuVendor::kAmd) return visible_amd_gpus(std::move(machine), environment);
  const std::string variable = visibility_variable(machine.vendor);
  return under(std::move(machine), variable, environment);
}

}  // namespace lrun::launcher
