// Lists the GPUs and MIG instances that the NVIDIA driver reports, with their compute processes. find_gpus() calls it
// in a child process.
#include "cluster/nvml.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "base/fd.h"
#include "cluster/nvml_library.h"

namespace lrun::launcher {
namespace {

using Device = NvmlLibrary::Device;
using Return = NvmlLibrary::Return;
constexpr Return kSuccess = NvmlLibrary::kSuccess;
constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE
constexpr unsigned kMostProcesses = 64;
/// The server that shares a GPU between its clients. The kernel cuts names after 15 letters.
constexpr const char* kSharingServer = "nvidia-cuda-mps";

GpuInventory no_gpus(GpuAnswer answer, std::string detail) { return {answer, {}, std::move(detail)}; }

GpuInventory refused_start(const NvmlLibrary& nvml, Return code) {
  if (code == NvmlLibrary::kDriverNotLoaded) {
    return no_gpus(GpuAnswer::kDriverNotLoaded, "the NVIDIA driver is not loaded");
  }
  if (code == NvmlLibrary::kLibraryNotFound) {
    return no_gpus(GpuAnswer::kNoLibrary, "the NVIDIA driver's library is not installed");
  }
  return no_gpus(GpuAnswer::kFailed, "the NVIDIA driver reports '" + nvml.error_text(code) + "'");
}

/// NVML writes '00000000:10:00.0' with capital letters, sysfs '0000:10:00.0' with small ones.
std::string pci_address_of(const NvmlLibrary& nvml, Device device) {
  NvmlLibrary::PciInfo info = {};
  if (nvml.pci_info == nullptr || nvml.pci_info(device, &info) != kSuccess) return {};
  std::string address(info.address, std::find(std::begin(info.address), std::end(info.address), '\0'));
  constexpr std::size_t kDomainDigits = 4;
  const auto colon = address.find(':');
  if (colon == std::string::npos || colon < kDomainDigits) return {};
  address.erase(0, colon - kDomainDigits);
  for (char& letter : address) letter = letter >= 'A' && letter <= 'F' ? static_cast<char>(letter - 'A' + 'a') : letter;
  return address;
}

ComputeMode compute_mode_of(const NvmlLibrary& nvml, Device device) {
  int mode = 0;
  if (nvml.compute_mode == nullptr || nvml.compute_mode(device, &mode) != kSuccess) return ComputeMode::kShared;
  constexpr int kProhibited = 2;
  return mode == 0 ? ComputeMode::kShared : mode == kProhibited ? ComputeMode::kProhibited : ComputeMode::kExclusive;
}

std::string process_name(unsigned pid) {
  const Fd file(::open(("/proc/" + std::to_string(pid) + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[64];
  const ssize_t length = file ? ::read(file.get(), buffer, sizeof buffer) : 0;
  std::string name(buffer, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  name.resize(std::min(name.size(), name.find('\n')));
  return name;
}

/// Without the server of a shared GPU.
std::vector<GpuProcess> processes_on(const NvmlLibrary& nvml, Device device) {
  std::vector<GpuProcess> processes;
  for (const NvmlLibrary::ProcessInfo& info : nvml.processes_on(device, kMostProcesses)) {
    std::string name = process_name(info.pid);
    if (name.starts_with(kSharingServer)) continue;
    processes.push_back({static_cast<int>(info.pid), info.memory_mib(), std::move(name)});
  }
  return processes;
}

/// One GPU or instance with all that the driver reports. `failure` gets the code when the driver reports neither a UUID
/// nor that the GPU is lost.
Gpu describe_gpu(const NvmlLibrary& nvml, Device device, unsigned index, Return& failure) {
  Gpu gpu{static_cast<int>(index), "", std::to_string(index), false};
  char text[kTextBytes] = {};
  failure = nvml.uuid(device, text, sizeof text);
  gpu.lost = failure == NvmlLibrary::kGpuIsLost;
  if (gpu.lost) failure = kSuccess;
  if (gpu.lost || failure != kSuccess) return gpu;
  gpu.uuid = text;
  if (nvml.name != nullptr && nvml.name(device, text, sizeof text) == kSuccess) gpu.name = text;
  gpu.pci_address = pci_address_of(nvml, device);
  gpu.mode = compute_mode_of(nvml, device);
  gpu.processes = processes_on(nvml, device);
  return gpu;
}

bool is_in_mig_mode(const NvmlLibrary& nvml, Device device) {
  unsigned current = 0;
  unsigned pending = 0;
  return nvml.mig_mode != nullptr && nvml.most_instances != nullptr && nvml.instance != nullptr &&
         nvml.mig_mode(device, &current, &pending) == kSuccess && current == 1;
}

/// The instances of `gpu`, each as a device of its own.
std::vector<Gpu> instances_of(const NvmlLibrary& nvml, Device device, const Gpu& gpu) {
  std::vector<Gpu> instances;
  unsigned most = 0;
  if (nvml.most_instances(device, &most) != kSuccess) return instances;
  for (unsigned i = 0; i < most; ++i) {
    Device handle = nullptr;
    Return failure = kSuccess;
    if (nvml.instance(device, i, &handle) != kSuccess) continue;  // the numbers of instances have gaps
    Gpu instance = describe_gpu(nvml, handle, static_cast<unsigned>(gpu.index), failure);
    if (failure != kSuccess || !instance.is_instance()) continue;
    instance.visible_as = instance.uuid;
    instance.gpu_uuid = gpu.uuid;
    instance.pci_address = gpu.pci_address;
    instance.mode = gpu.mode;
    instances.push_back(std::move(instance));
  }
  return instances;
}

/// Adds one GPU, or its instances, to the inventory.
void add_gpu(const NvmlLibrary& nvml, unsigned index, GpuInventory& inventory) {
  const std::string name = "GPU " + std::to_string(index);
  Device device = nullptr;
  Return failure = nvml.handle(index, &device);
  Gpu gpu;
  if (failure == NvmlLibrary::kGpuIsLost) {
    gpu = {static_cast<int>(index), "", std::to_string(index), true};
    failure = kSuccess;
  } else if (failure == kSuccess) {
    gpu = describe_gpu(nvml, device, index, failure);
  }
  if (failure != kSuccess) {
    // CUDA cannot use such a GPU either, for example without permission. It is left out with a note.
    inventory.detail = name + " does not answer: '" + nvml.error_text(failure) + "'";
    return;
  }
  if (gpu.lost) inventory.detail = name + " is lost";
  if (gpu.mode == ComputeMode::kProhibited) inventory.detail = name + "'s compute mode is 'prohibited'";
  if (gpu.lost || !is_in_mig_mode(nvml, device)) {
    inventory.gpus.push_back(std::move(gpu));
    return;
  }
  std::vector<Gpu> instances = instances_of(nvml, device, gpu);
  if (instances.empty()) inventory.detail = name + " is in MIG mode and has no instances";
  std::move(instances.begin(), instances.end(), std::back_inserter(inventory.gpus));
}

GpuInventory count_gpus(const NvmlLibrary& nvml) {
  unsigned count = 0;
  if (const Return code = nvml.count(&count); code != kSuccess) {
    return no_gpus(GpuAnswer::kFailed, "the NVIDIA driver cannot count its GPUs: '" + nvml.error_text(code) + "'");
  }
  GpuInventory inventory{GpuAnswer::kCounted, {}, count == 0 ? "the NVIDIA driver reports no GPU" : ""};
  for (unsigned index = 0; index < count; ++index) add_gpu(nvml, index, inventory);
  return inventory;
}

}  // namespace

GpuInventory ask_nvml() {
  const std::optional<NvmlLibrary> nvml = NvmlLibrary::open();
  if (!nvml) return no_gpus(GpuAnswer::kNoLibrary, "there is no libnvidia-ml.so.1");
  if (const Return code = nvml->init(); code != kSuccess) return refused_start(*nvml, code);
  GpuInventory inventory = count_gpus(*nvml);
  nvml->shutdown();
  return inventory;
}

}  // namespace lrun::launcher
