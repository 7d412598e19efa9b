#include "cluster/other_gpus.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/kernel_text.h"
#include "cluster/system_file.h"

namespace lrun::launcher {
namespace {

/// The kernel packs bus, device and function into one number.
std::string pci_address(unsigned long long domain, unsigned long long location) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, (location >> 8U) & 0xffU, (location >> 3U) & 0x1fU,
                     location & 7U);
}

/// '0000:00:02.0' is on bus 0.
bool is_on_bus_zero(const std::string& address) { return address.substr(address.find(':') + 1).starts_with("00:"); }

}  // namespace

std::optional<GpuInventory> find_amd_gpus(const std::string& root) {
  const std::string nodes = root + "/sys/class/kfd/kfd/topology/nodes/";
  GpuInventory inventory{GpuAnswer::kCounted, {}, "", GpuVendor::kAmd};
  for (const std::string& node : list_names(nodes)) {
    const std::string properties = read_text(nodes + node + "/properties");
    const auto property = [&](std::string_view name) { return counter_named(properties, name).value_or(0); };
    // Processors are nodes too, without SIMD units. A GPU that a container may not use has gpu_id 0.
    if (property("simd_count") == 0 || read_number(nodes + node + "/gpu_id", 0) == 0) continue;
    Gpu gpu;
    gpu.index = static_cast<int>(inventory.gpus.size());
    gpu.visible_as = std::to_string(gpu.index);
    if (const auto id = property("unique_id"); id != 0) gpu.uuid = fmt::format("GPU-{:016x}", id);
    gpu.name = read_line(nodes + node + "/name");
    gpu.pci_address = pci_address(property("domain"), property("location_id"));
    inventory.gpus.push_back(std::move(gpu));
  }
  if (inventory.gpus.empty()) return std::nullopt;
  if (::access((root + "/dev/kfd").c_str(), R_OK | W_OK) == 0) return inventory;
  return GpuInventory{
      GpuAnswer::kFailed, {}, "no permission to use /dev/kfd: join the groups 'render' and 'video'", GpuVendor::kAmd};
}

std::optional<GpuInventory> find_intel_gpus(const std::string& root) {
  std::vector<std::string> addresses;
  for (const char* const driver : {"i915", "xe"}) {
    const std::string folder = root + "/sys/bus/pci/drivers/" + driver + "/";
    for (const std::string& name : list_names(folder)) {
      constexpr long kDisplay = 0x03;
      if (name.find(':') == std::string::npos || is_on_bus_zero(name)) continue;
      if (read_number(folder + name + "/class", 0) >> 16 == kDisplay) addresses.push_back(name);
    }
  }
  if (addresses.empty()) return std::nullopt;
  std::sort(addresses.begin(), addresses.end());
  GpuInventory inventory{GpuAnswer::kCounted, {}, "", GpuVendor::kIntel};
  for (std::string& address : addresses) {
    Gpu gpu;
    gpu.index = static_cast<int>(inventory.gpus.size());
    gpu.visible_as = std::to_string(gpu.index);
    gpu.pci_address = std::move(address);
    inventory.gpus.push_back(std::move(gpu));
  }
  return inventory;
}

}  // namespace lrun::launcher
