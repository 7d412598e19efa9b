#pragma once

#include <c10/core/Device.h>
#include <lrun/session.h>
#include <lrun/world.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::detail {

/// What a process can see of the GPUs of its node.
struct VisibleGpus {
  int count = 0;
  std::optional<std::string> named;  ///< CUDA_VISIBLE_DEVICES

  bool operator==(const VisibleGpus&) const = default;
};

/// The GPUs of a process that nobody gave devices: the one of its local rank (the only one it sees, where it was given
/// one alone), or all of them where its strategy splits batches. Empty where there are none.
/// \throws lrun::Unsupported  the node has more ranks than the process sees GPUs.
std::vector<at::Device> default_gpus(const World& world, bool splits_batches, const VisibleGpus& gpus);

/// Devices as LibTorch spells them; 'cuda' without a number is the GPU of default_gpus() for one device.
/// \throws lrun::Unsupported  a name that is none, CPUs among GPUs.
std::vector<at::Device> parse_devices(const std::vector<std::string>& names, const World& world,
                                      const VisibleGpus& gpus);

/// \throws lrun::Unsupported  a device whose number is not below the count; says what there is.
void require_visible(const std::vector<at::Device>& devices, const VisibleGpus& gpus);

/// Why a process that nobody gave devices does not train on GPUs although its node seems to have some, as a warning;
/// nothing where it does.
/// \param cuda_side  why LibTorch's CUDA side does not load; empty: it does.
std::optional<std::string> why_on_cpus(const std::string& cuda_side, const VisibleGpus& gpus);

struct ChosenDevices {
  std::vector<at::Device> devices;     ///< At least one.
  std::optional<std::string> warning;  ///< That of why_on_cpus().
};

/// What the session trains on: what the program says, else the launcher; where neither does and the world is that of
/// the environment, the GPUs that there are, else the CPU. Loads LibTorch's CUDA side when a GPU is wanted, and makes
/// the first device the current one of the calling thread.
/// \throws lrun::Unsupported  a device that cannot be used: its side of LibTorch is missing, there is no driver, no
///                            such GPU. Before any tensor is made.
ChosenDevices choose_devices(const World& world, const SessionOptions& options);

/// The backend of a group by default: what was asked for, else nccl where GPUs of several ranks meet.
std::string choose_backend(std::string_view asked, at::Device device, int world_size);

}  // namespace lrun::detail
