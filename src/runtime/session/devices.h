#pragma once

#include <c10/core/Device.h>
#include <lrun/session.h>
#include <lrun/world.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::detail {

/// The GPUs of the node, as far as a process can see them.
struct VisibleGpus {
  int count = 0;
  std::optional<std::string> named;  ///< CUDA_VISIBLE_DEVICES

  bool operator==(const VisibleGpus&) const = default;
};

/// The default GPUs of a process: the one of its local rank (or the only visible one, if it was given one alone), or
/// all of them if its strategy splits batches. Empty if there is no GPU.
/// \throws lrun::Unsupported  the node has more ranks than the process sees GPUs.
std::vector<at::Device> default_gpus(const World& world, bool splits_batches, const VisibleGpus& gpus);

/// Devices in LibTorch's spelling; 'cuda' without a number is the GPU of default_gpus() for one device.
/// \throws lrun::Unsupported  a name that LibTorch does not know, or CPUs among GPUs.
std::vector<at::Device> parse_devices(const std::vector<std::string>& names, const World& world,
                                      const VisibleGpus& gpus);

/// \throws lrun::Unsupported  a device whose number is not below the count; names the devices that exist.
void require_visible(const std::vector<at::Device>& devices, const VisibleGpus& gpus);

/// A warning that a process without given devices does not train on GPUs although its node seems to have some; empty if
/// it does.
/// \param cuda_side  why LibTorch's CUDA side does not load; empty: it does.
std::optional<std::string> why_on_cpus(const std::string& cuda_side, const VisibleGpus& gpus);

struct ChosenDevices {
  std::vector<at::Device> devices;     ///< At least one.
  std::optional<std::string> warning;  ///< That of why_on_cpus().
};

/// The devices of the session: the program's, else the launcher's. If neither names any and the world is that of the
/// environment: the visible GPUs, else the CPU. Loads LibTorch's CUDA side when a GPU is wanted, and makes the first
/// device the current one of the calling thread.
/// \throws lrun::Unsupported  a device that cannot be used: its side of LibTorch is missing, there is no driver, no
///                            such GPU. Before any tensor is made.
ChosenDevices choose_devices(const World& world, const SessionOptions& options);

}  // namespace lrun::detail
