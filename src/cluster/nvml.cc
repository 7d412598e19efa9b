#include "cluster/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

namespace lrun {
namespace {

// The few entry points that a count needs, by their stable ABI: no header of NVIDIA's is needed to build.
using Return = int;
using Device = struct OpaqueDevice*;
constexpr Return kSuccess = 0;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kLibraryNotFound = 12;
constexpr Return kGpuIsLost = 15;
constexpr unsigned kUuidBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE

constexpr const char* kLibrary = "libnvidia-ml.so.1";
/// What a driver leaves behind: its nodes (also of WSL and of containers), or its library where distributions put it.
constexpr const char* kTraces[] = {
    "/dev/nvidiactl",
    "/proc/driver/nvidia",
    "/dev/dxg",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
};

/// The loader looks for a library that is not there in some fifty places: a tenth of the time that a short run takes.
void* open_library() {
  if (void* loaded = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  const bool possible =
      std::getenv("LD_LIBRARY_PATH") != nullptr ||
      std::any_of(std::begin(kTraces), std::end(kTraces), [](const char* trace) { return access(trace, F_OK) == 0; });
  return possible ? dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL) : nullptr;
}

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

class Nvml {
 public:
  /// Empty when the library is not there or lacks an entry point.
  static std::optional<Nvml> open() {
    Nvml nvml;
    nvml.library_.reset(open_library());
    if (!nvml.library_) return std::nullopt;
    const bool complete =
        nvml.find(nvml.init, "nvmlInit_v2") && nvml.find(nvml.shutdown, "nvmlShutdown") &&
        nvml.find(nvml.error_string, "nvmlErrorString") && nvml.find(nvml.count, "nvmlDeviceGetCount_v2") &&
        nvml.find(nvml.handle, "nvmlDeviceGetHandleByIndex_v2") && nvml.find(nvml.uuid, "nvmlDeviceGetUUID");
    if (!complete) return std::nullopt;
    return nvml;
  }

  [[nodiscard]] std::string words(Return code) const {
    const char* text = error_string(code);
    return text != nullptr ? text : "error " + std::to_string(code);
  }

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;

 private:
  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_.get(), name));
    return function != nullptr;
  }

  std::unique_ptr<void, CloseLibrary> library_;
};

GpuInventory no_gpus(GpuAnswer answer, std::string detail) { return {answer, {}, std::move(detail)}; }

GpuInventory refused_start(const Nvml& nvml, Return code) {
  if (code == kDriverNotLoaded) return no_gpus(GpuAnswer::kDriverNotLoaded, "the NVIDIA driver is not loaded");
  if (code == kLibraryNotFound) return no_gpus(GpuAnswer::kNoLibrary, "the NVIDIA driver's library is not there");
  return no_gpus(GpuAnswer::kFailed, "the NVIDIA driver says '" + nvml.words(code) + "'");
}

/// One GPU; `failure` gets the code when the driver gives neither a UUID nor 'lost'.
Gpu ask_gpu(const Nvml& nvml, unsigned index, Return& failure) {
  Gpu gpu;
  gpu.index = static_cast<int>(index);
  gpu.visible_as = std::to_string(index);
  Device device = nullptr;
  char uuid[kUuidBytes] = {};
  Return code = nvml.handle(index, &device);
  if (code == kSuccess) code = nvml.uuid(device, uuid, sizeof uuid);
  if (code == kSuccess) {
    gpu.uuid = uuid;
  } else if (code == kGpuIsLost) {
    gpu.lost = true;
  } else {
    failure = code;
  }
  return gpu;
}

GpuInventory count_gpus(const Nvml& nvml) {
  unsigned count = 0;
  if (const Return code = nvml.count(&count); code != kSuccess) {
    return no_gpus(GpuAnswer::kFailed, "the NVIDIA driver does not count its GPUs: '" + nvml.words(code) + "'");
  }
  GpuInventory inventory{GpuAnswer::kCounted, {}, count == 0 ? "the NVIDIA driver has no GPU" : ""};
  for (unsigned index = 0; index < count; ++index) {
    Return failure = kSuccess;
    Gpu gpu = ask_gpu(nvml, index, failure);
    if (failure != kSuccess) {
      // Such a GPU cannot be used by CUDA either (no permission, for example): it is left out, and said.
      inventory.detail = "GPU " + std::to_string(index) + " does not answer: '" + nvml.words(failure) + "'";
      continue;
    }
    if (gpu.lost) inventory.detail = "GPU " + std::to_string(index) + " is lost";
    inventory.gpus.push_back(std::move(gpu));
  }
  return inventory;
}

}  // namespace

GpuInventory ask_nvml() {
  const std::optional<Nvml> nvml = Nvml::open();
  if (!nvml) return no_gpus(GpuAnswer::kNoLibrary, "there is no libnvidia-ml.so.1");
  if (const Return code = nvml->init(); code != kSuccess) return refused_start(*nvml, code);
  GpuInventory inventory = count_gpus(*nvml);
  nvml->shutdown();
  return inventory;
}

}  // namespace lrun
