// Opens NVIDIA's management library and looks its entry points up. nvml.cc, read_driver.cc and gpu_use.cc ask through
// it, each in a child process.
#include "cluster/nvml_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace lrun::launcher {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";

/// Traces of a driver: its nodes (also in WSL and in containers), or its library where distributions put it.
constexpr const char* kTraces[] = {
    "/dev/nvidiactl",
    "/proc/driver/nvidia",
    "/dev/dxg",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
};

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool is_on_library_path() {
  const char* const variable = std::getenv("LD_LIBRARY_PATH");
  if (variable == nullptr) return false;
  std::string_view rest = variable;
  while (!rest.empty()) {
    const auto end = rest.find_first_of(":;");
    const std::string directory(rest.substr(0, end));
    if (exists((directory.empty() ? "." : directory) + "/" + kLibrary)) return true;
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return false;
}

/// dlopen() with RTLD_NOLOAD would search the file system, too.
bool is_loaded() {
  const auto is_it = [](dl_phdr_info* object, std::size_t, void*) {
    return std::string_view(object->dlpi_name).ends_with(kLibrary) ? 1 : 0;
  };
  return ::dl_iterate_phdr(is_it, nullptr) == 1;
}

}  // namespace

void NvmlLibrary::Close::operator()(void* library) const { ::dlclose(library); }

bool NvmlLibrary::is_likely() {
  return is_loaded() || is_on_library_path() || std::any_of(std::begin(kTraces), std::end(kTraces), exists);
}

std::optional<NvmlLibrary> NvmlLibrary::open() {
  NvmlLibrary nvml;
  if (is_likely()) nvml.library_.reset(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL));
  if (!nvml.library_ || !nvml.find_all()) return std::nullopt;
  return nvml;
}

template <class Function>
bool NvmlLibrary::find(Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(::dlsym(library_.get(), symbol));
  return function != nullptr;
}

bool NvmlLibrary::find_all() {
  find(name, "nvmlDeviceGetName");
  find(pci_info, "nvmlDeviceGetPciInfo_v3");
  find(compute_mode, "nvmlDeviceGetComputeMode");
  if (!find(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3")) {
    find(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v2");
  }
  find(process_samples, "nvmlDeviceGetProcessUtilization");
  find(rates, "nvmlDeviceGetUtilizationRates");
  find(mig_mode, "nvmlDeviceGetMigMode");
  find(most_instances, "nvmlDeviceGetMaxMigDeviceCount");
  find(instance, "nvmlDeviceGetMigDeviceHandleByIndex");
  find(driver_version, "nvmlSystemGetDriverVersion");
  if (!find(cuda_version, "nvmlSystemGetCudaDriverVersion_v2")) find(cuda_version, "nvmlSystemGetCudaDriverVersion");
  find(p2p_status, "nvmlDeviceGetP2PStatus");
  find(remapped_rows, "nvmlDeviceGetRemappedRows");
  find(ecc_errors, "nvmlDeviceGetTotalEccErrors");
  return find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") && find(error_string, "nvmlErrorString") &&
         find(count, "nvmlDeviceGetCount_v2") && find(handle, "nvmlDeviceGetHandleByIndex_v2") &&
         find(uuid, "nvmlDeviceGetUUID");
}

std::vector<NvmlLibrary::ProcessInfo> NvmlLibrary::processes_on(Device device, unsigned most) const {
  if (compute_processes == nullptr) return {};
  std::vector<ProcessInfo> infos(most);
  unsigned found = most;
  const Return code = compute_processes(device, &found, infos.data());
  infos.resize(code == kSuccess || code == kInsufficientSize ? std::min(found, most) : 0);
  return infos;
}

std::string NvmlLibrary::error_text(Return code) const {
  const char* const text = error_string(code);
  return text != nullptr ? text : "error " + std::to_string(code);
}

}  // namespace lrun::launcher
