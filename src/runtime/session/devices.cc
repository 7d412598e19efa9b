// In: the devices of the options and of the environment, and the GPUs of the node. Out: the devices of this process and
// its default backend. Called by the session's constructor.
#include "runtime/session/devices.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <lrun/error.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "runtime/session/strategy.h"

namespace lrun::detail {
namespace {

constexpr std::string_view kUseCpus = "; on CPUs: lrun --accelerator cpu, or SessionOptions::devices = {\"cpu\"}";

std::string quoted(const std::string& name) { return "device '" + name + "'"; }

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Unsupported(quoted(name) + " " + why + std::string(kUseCpus));
}

/// LibTorch's CUDA library lies beside its CPU library, wherever the loader found that one.
std::string folder_of_libtorch() {
  Dl_info info;
  const auto* symbol = reinterpret_cast<const void*>(&at::globalContext);
  if (::dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

/// \return  empty when it is loaded, else the loader's reason. It stays loaded: CUDA does not survive being unloaded.
std::string load_cuda_side() {
  for (const std::string& path : {folder_of_libtorch() + "libtorch_cuda.so", std::string("libtorch_cuda.so")}) {
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  }
  const char* reason = ::dlerror();
  return reason == nullptr ? "no reason given" : reason;
}

/// \throws Unsupported  this LibTorch has no such devices. \param name  of the device, for messages.
void open_device_type(at::DeviceType type, const std::string& name) {
  // Also where there is a guard: it is in libc10_cuda, which liblrun_cuda.so links.
  const std::string reason = type == at::kCUDA ? load_cuda_side() : std::string();
  if (!reason.empty()) refuse(name, "needs LibTorch's CUDA library, which does not load (" + reason + ")");
  if (!c10::impl::hasDeviceGuardImpl(type)) refuse(name, "is of a kind that this LibTorch was built without");
}

/// LibTorch asks once for its CUDA side, and keeps the answer that there is none.
/// \throws Unsupported  it has asked before the library was loaded.
void require_that_libtorch_knows(at::DeviceType type, const std::string& name) {
  if (type != at::kCUDA || at::globalContext().getAcceleratorHooksInterface(type).isBuilt()) return;
  throw Unsupported(quoted(name) +
                    " cannot be used: LibTorch was used before its CUDA library was loaded. Make the Session first in "
                    "main(), before torch::manual_seed() and the first tensor, or link libtorch_cuda");
}

VisibleGpus visible(at::DeviceType type) {
  VisibleGpus gpus;
  gpus.count = static_cast<unsigned char>(c10::impl::VirtualGuardImpl(type).deviceCount());  // never below 0
  if (const char* named = std::getenv("CUDA_VISIBLE_DEVICES"); type == at::kCUDA && named != nullptr) {
    gpus.named = named;
  }
  return gpus;
}

/// Whether to look for a GPU at all: loading LibTorch's CUDA side takes longer than many a program.
bool may_have_gpus() {
  const char* named = std::getenv("CUDA_VISIBLE_DEVICES");
  if (named != nullptr && (std::string_view(named).empty() || std::string_view(named).starts_with('-'))) return false;
  std::error_code unknown;
  return std::filesystem::exists("/dev/nvidiactl", unknown) || std::filesystem::exists("/dev/dxg", unknown);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A world that the program made by hand has the devices that it names; so has a world with its own group.
bool may_choose_gpus(const SessionOptions& options) {
  return !options.world && !options.connect && is_one_of(options.backend, {"", "auto", "nccl"});
}

bool trains_split(const World& world, const SessionOptions& options) {
  return splits_batches(options.strategy.value_or("").empty() ? world.strategy : *options.strategy);
}

ChosenDevices find_gpus(const World& world, const SessionOptions& options) {
  if (!may_choose_gpus(options) || !may_have_gpus()) return {};
  const std::string reason = load_cuda_side();
  const VisibleGpus gpus = reason.empty() ? visible(at::kCUDA) : VisibleGpus();
  if (auto warning = why_on_cpus(reason, gpus)) return {{}, std::move(warning)};
  require_that_libtorch_knows(at::kCUDA, "cuda");
  return {default_gpus(world, trains_split(world, options), gpus), std::nullopt};
}

at::Device parse(const std::string& name) {
  try {
    return at::Device(name);
  } catch (const std::exception&) {
    refuse(name, "is none that LibTorch knows: it has names such as 'cuda:1'");
  }
}

at::Device gpu(std::size_t index, at::DeviceType type = at::kCUDA) {
  return {type, static_cast<at::DeviceIndex>(index)};
}

/// One GPU of several is the local rank's. A process that sees only one was given it, or shares the node's only one.
std::size_t index_of_rank(const World& world, const VisibleGpus& gpus) {
  const bool one_was_given = gpus.count == 1 && gpus.named && gpus.named->find(',') == std::string::npos;
  if (one_was_given || world.local_world_size == 1) return 0;
  if (world.local_world_size <= gpus.count) return static_cast<std::size_t>(world.local_rank);
  throw Unsupported("this node has " + std::to_string(world.local_world_size) + " ranks, and each sees " +
                    std::to_string(gpus.count) + (gpus.count == 1 ? " GPU" : " GPUs") + ": start one rank a GPU" +
                    std::string(kUseCpus));
}

}  // namespace

std::vector<at::Device> default_gpus(const World& world, bool splits_batches, const VisibleGpus& gpus) {
  if (gpus.count == 0) return {};
  if (!splits_batches) return {gpu(index_of_rank(world, gpus))};
  std::vector<at::Device> all;
  for (int index = 0; index < gpus.count; ++index) all.push_back(gpu(static_cast<std::size_t>(index)));
  return all;
}

std::optional<std::string> why_on_cpus(const std::string& cuda_side, const VisibleGpus& gpus) {
  if (cuda_side.empty() && gpus.count > 0) return std::nullopt;
  const std::string named = gpus.named ? " (CUDA_VISIBLE_DEVICES is '" + *gpus.named + "')" : "";
  return "trains on the CPU, although this node has a driver of GPUs: " +
         (cuda_side.empty() ? "there is no GPU that this process can use" + named + ", and lrun doctor says why"
                            : "LibTorch's CUDA library does not load (" + cuda_side + ")") +
         "; if CPUs are meant: lrun --accelerator cpu, or SessionOptions::devices = {\"cpu\"}";
}

std::vector<at::Device> parse_devices(const std::vector<std::string>& names, const World& world,
                                      const VisibleGpus& gpus) {
  std::vector<at::Device> devices;
  for (const std::string& name : names) {
    at::Device device = parse(name);
    if (device.is_cpu()) device = at::kCPU;
    if (!device.is_cpu() && !device.has_index()) device = gpu(index_of_rank(world, gpus), device.type());
    devices.push_back(device);
    if (device.type() == devices.front().type()) continue;
    refuse(name, "is of another kind than '" + names.front() + "': one process trains on devices of one kind");
  }
  return devices;
}

void require_visible(const std::vector<at::Device>& devices, const VisibleGpus& gpus) {
  const std::string named = gpus.named ? " (CUDA_VISIBLE_DEVICES is '" + *gpus.named + "')" : "";
  for (const at::Device& device : devices) {
    if (device.is_cpu() || device.index() < gpus.count) continue;
    if (gpus.count > 0) {
      throw Unsupported(quoted(device.str()) + " is not there: this process sees " + std::to_string(gpus.count) +
                        (gpus.count == 1 ? " GPU" : " GPUs") + named + ", counted from 0");
    }
    refuse(device.str(), "needs a GPU, and there is none that this process can use" + named + ": lrun doctor says why");
  }
}

ChosenDevices choose_devices(const World& world, const SessionOptions& options) {
  const auto& names = options.devices.empty() ? world.devices : options.devices;
  ChosenDevices chosen;
  std::vector<at::Device>& devices = chosen.devices;
  if (names.empty()) {
    chosen = find_gpus(world, options);
  } else if (const at::Device first = parse(names.front()); first.is_cpu()) {
    devices = parse_devices(names, world, {});
  } else {
    open_device_type(first.type(), names.front());
    const VisibleGpus gpus = visible(first.type());
    if (gpus.count == 0) require_visible({gpu(0, first.type())}, gpus);
    devices = parse_devices(names, world, gpus);
    require_visible(devices, gpus);
    require_that_libtorch_knows(first.type(), names.front());
  }
  if (devices.empty()) devices = {at::kCPU};
  if (!devices.front().is_cpu()) c10::impl::VirtualGuardImpl(devices.front().type()).setDevice(devices.front());
  return chosen;
}

}  // namespace lrun::detail
