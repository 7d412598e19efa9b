#include "cluster/visible_gpus.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

namespace lrun {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The GPU that an index names; indices count the machine's GPUs, those that do not answer included.
std::optional<Gpu> find_by_index(const std::vector<Gpu>& gpus, const std::string& entry) {
  int index = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (error != std::errc() || end != entry.data() + entry.size()) return std::nullopt;
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.index == index; });
  return found == gpus.end() ? std::nullopt : std::optional(*found);
}

/// The one GPU whose UUID begins with `entry`.
std::optional<Gpu> find_by_uuid(const std::vector<Gpu>& gpus, const std::string& entry) {
  if (!entry.starts_with("GPU-")) return std::nullopt;
  const auto matches = [&](const Gpu& gpu) { return gpu.uuid.starts_with(entry); };
  if (std::count_if(gpus.begin(), gpus.end(), matches) != 1) return std::nullopt;
  return *std::find_if(gpus.begin(), gpus.end(), matches);
}

std::optional<Gpu> find_gpu(const std::vector<Gpu>& gpus, const std::string& entry) {
  // An instance is not in NVML's list of GPUs; whoever can write its UUID down has it.
  if (entry.starts_with("MIG-") && !gpus.empty()) return Gpu{-1, entry, entry, false};
  std::optional<Gpu> gpu = find_by_index(gpus, entry);
  if (!gpu) gpu = find_by_uuid(gpus, entry);
  if (gpu) gpu->visible_as = entry;
  return gpu;
}

bool has_gpu(const std::vector<Gpu>& gpus, const Gpu& gpu) {
  return std::any_of(gpus.begin(), gpus.end(),
                     [&](const Gpu& other) { return other.index == gpu.index && other.uuid == gpu.uuid; });
}

}  // namespace

std::vector<std::string> split_visible_devices(const std::string& value) {
  std::vector<std::string> entries;
  if (trimmed(value).empty()) return entries;
  std::string_view rest = value;
  while (true) {
    const auto comma = rest.find(',');
    entries.emplace_back(trimmed(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return entries;
    rest.remove_prefix(comma + 1);
  }
}

GpuInventory visible_gpus(GpuInventory machine, const std::optional<std::string>& cuda_visible_devices) {
  if (!cuda_visible_devices || machine.gpus.empty()) return machine;
  GpuInventory seen{machine.answer, {}, machine.detail};
  for (const std::string& entry : split_visible_devices(*cuda_visible_devices)) {
    const std::optional<Gpu> gpu = find_gpu(machine.gpus, entry);
    if (!gpu) break;
    if (has_gpu(seen.gpus, *gpu)) {
      seen.gpus.clear();
      break;
    }
    seen.gpus.push_back(*gpu);
  }
  if (seen.gpus.empty()) seen.detail = "CUDA_VISIBLE_DEVICES='" + *cuda_visible_devices + "' leaves none";
  return seen;
}

}  // namespace lrun
