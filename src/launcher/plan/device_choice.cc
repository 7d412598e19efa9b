#include "plan/device_choice.h"

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "base/user_error.h"
#include "plan/busy_gpus.h"
#include "plan/device_request.h"
#include "plan/personality.h"
#include "plan/tpu_choice.h"

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;

std::string counted(std::size_t count, const std::string& what) {
  return count == 0 ? "no " + what : std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::vector<DeviceId> cpu_ranks(int count) {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) devices.push_back({DeviceId::Kind::kCpu, std::to_string(index)});
  return devices;
}

std::string joined(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId& device : devices) text += (text.empty() ? "" : ",") + device.id;
  return text;
}

/// The same option with a plain count, for hints; selections of hosts take none.
Setting<std::string> two_of(const Setting<std::string>& setting, const std::string& node) {
  if (setting.origin == "--include" || setting.origin == "--exclude") return {"2", setting.source, "--devices"};
  const bool selects_of_host = setting.origin.starts_with("--include") || setting.origin.starts_with(kLeftByExclude);
  return {"2", setting.source, selects_of_host ? origin_of_host("-H", node) : setting.origin};
}

/// Holds one setting against one node. Constructed for the duration of a choice.
class Chooser {
 public:
  Chooser(const LaunchRequest& request, const AllocatedNode& node) : request_(request), node_(node) {
    for (const Gpu& gpu : node.gpus.gpus) {
      all_.push_back(device_of(gpu));
      if (is_usable(gpu)) healthy_.push_back(gpu);
    }
  }

  [[nodiscard]] std::vector<DeviceId> devices(const DeviceRequest& asked, const Setting<std::string>& setting) const {
    if (!on_gpus(asked, setting)) return cpus(asked, setting);
    check_vendor(asked, setting);
    return gpus(asked, setting);
  }

  /// Only a setting that picks GPUs narrows what workers see; torchrun's count and the default do not, unless a lost
  /// GPU would be counted in.
  [[nodiscard]] std::optional<std::string> visible(const DeviceRequest& asked, const std::vector<DeviceId>& chosen,
                                                   bool by_devices) const {
    if (chosen.front().kind != DeviceId::Kind::kGpu) return std::nullopt;
    const bool first_ones = chosen.size() <= all_.size() && std::equal(chosen.begin(), chosen.end(), all_.begin());
    const bool picked = asked.kind == Kind::kList || (by_devices && chosen != all_);
    return picked || !first_ones ? std::optional(joined(chosen)) : std::nullopt;
  }

  /// What is said about busy GPUs among `chosen`, where they may be used all the same.
  /// \throws UserError  one that may not.
  [[nodiscard]] std::vector<std::string> judge_busy(const DeviceRequest& asked, bool by_devices,
                                                    const std::vector<DeviceId>& chosen) const {
    std::vector<std::string> lines;
    const bool gpus_wanted = by_devices || asked.kind == Kind::kAllGpus || request_.accelerator.value == "gpu";
    const bool refuses = gpus_wanted && personality_of(request_.compat).refuse_busy_gpus;
    for (std::size_t place = 0; place < node_.gpus.gpus.size(); ++place) {
      const Gpu& gpu = node_.gpus.gpus[place];
      const bool uses = chosen.front().kind == DeviceId::Kind::kGpu && names_again(chosen, gpu);
      if (!uses || gpu.processes.empty() || (request_.share_gpus && !is_taken(gpu))) continue;
      std::string line = "GPU '" + std::to_string(place) + "' of '" + node_.name + "' is busy: " + why_busy(gpu);
      if (refuses) throw UserError(line, busy_hint(node_, chosen.size(), is_taken(gpu)));
      lines.push_back(std::move(line));
    }
    return lines;
  }

  [[nodiscard]] std::vector<std::string> warnings(const DeviceRequest& asked, const Setting<std::string>& setting,
                                                  const std::vector<DeviceId>& chosen) const {
    std::vector<std::string> lines;
    const bool gpu = chosen.front().kind == DeviceId::Kind::kGpu;
    if (gpu && healthy_.size() < all_.size()) {
      lines.push_back(counted(all_.size() - healthy_.size(), "GPU") + " of '" + node_.name +
                      "' not used: " + node_.gpus.detail);
    }
    if (!gpu && asked.kind == Kind::kProcesses && request_.accelerator.value == "auto" && !healthy_.empty()) {
      lines.push_back("'" + as_written(setting) + "' is more than the " + counted(healthy_.size(), "GPU") + " of '" +
                      node_.name + "': no worker gets a GPU of its own");
    }
    const bool refused = node_.gpus.answer == GpuAnswer::kFailed || node_.gpus.answer == GpuAnswer::kDriverNotLoaded;
    if (!gpu && refused && request_.accelerator.value == "auto") lines.push_back("using CPUs: " + node_.gpus.detail);
    return lines;
  }

 private:
  static DeviceId device_of(const Gpu& gpu) { return {DeviceId::Kind::kGpu, gpu.visible_as, gpu.numa_node}; }

  /// 'this host has no GPU: there is no libnvidia-ml.so.1'
  [[nodiscard]] std::string why_none() const {
    std::string text = "'" + node_.name + "' has no GPU";
    if (!all_.empty()) text = "no GPU of '" + node_.name + "' works";
    return node_.gpus.detail.empty() ? text : text + ": " + node_.gpus.detail;
  }

  [[nodiscard]] bool on_gpus(const DeviceRequest& asked, const Setting<std::string>& setting) const {
    const std::string& accelerator = request_.accelerator.value;
    const bool only_gpus = asked.kind == Kind::kAllGpus || asked.kind == Kind::kList;
    if (accelerator == "cpu") {
      if (!only_gpus) return false;
      throw UserError(
          "'" + as_written(setting) + "' names GPUs, and '" + as_written(request_.accelerator) + "' wants none",
          "use '" + as_written(two_of(setting, node_.name)) + "' for two CPU ranks, or '--accelerator gpu'");
    }
    if (accelerator == "gpu") {
      if (healthy_.empty()) {
        throw UserError("'" + as_written(request_.accelerator) + "' cannot be had, " + why_none(),
                        "use '--accelerator cpu'");
      }
      return true;
    }
    if (only_gpus) {
      if (!healthy_.empty()) return true;
      throw UserError("'" + as_written(setting) + "' names GPUs, and " + why_none(),
                      "use '" + as_written(two_of(setting, node_.name)) + "' for two CPU ranks");
    }
    if (asked.kind == Kind::kCpuCount || healthy_.empty()) return false;
    const bool too_many = asked.kind == Kind::kProcesses && static_cast<std::size_t>(asked.count) > healthy_.size();
    return !too_many || request_.isolate_gpus;  // one GPU a worker leaves no choice: gpus() refuses
  }

  void check_vendor(const DeviceRequest& asked, const Setting<std::string>& setting) const {
    if (!asked.vendor || *asked.vendor == node_.gpus.vendor) return;
    const Setting<std::string> of_any{"gpu", setting.source, setting.origin};
    throw UserError("'" + as_written(setting) + "' names GPUs of Intel, and those of '" + node_.name + "' are others",
                    "use '" + as_written(of_any) + "'");
  }

  [[nodiscard]] std::vector<DeviceId> cpus(const DeviceRequest& asked, const Setting<std::string>& setting) const {
    switch (asked.kind) {
      case Kind::kNone:
      case Kind::kAuto:
        return cpu_ranks(1);
      case Kind::kCount:
      case Kind::kProcesses:
        return cpu_ranks(asked.count);
      case Kind::kAutoCount:
      case Kind::kCpuCount:
        return cpu_ranks(node_.cpus);
      case Kind::kAllGpus:
      case Kind::kList:
        break;
    }
    throw std::logic_error("on_gpus() has refused '" + as_written(setting) + "'");
  }

  [[nodiscard]] std::vector<DeviceId> gpus(const DeviceRequest& asked, const Setting<std::string>& setting) const {
    if (asked.kind == Kind::kList) return listed(asked, setting);
    std::size_t count = healthy_.size();
    if (asked.kind == Kind::kNone) count = 1;
    if (asked.kind == Kind::kCount || asked.kind == Kind::kProcesses) count = static_cast<std::size_t>(asked.count);
    if (asked.kind == Kind::kCpuCount) count = static_cast<std::size_t>(node_.cpus);
    if (count > healthy_.size()) {
      const Setting<std::string> possible{std::to_string(healthy_.size()), setting.source, setting.origin};
      throw UserError("'" + as_written(setting) + "' asks for " + counted(count, "device") + ", but '" + node_.name +
                          "' has " + counted(healthy_.size(), "GPU"),
                      "use '" + as_written(possible) + "', or '--accelerator cpu' for " + counted(count, "CPU rank"));
    }
    std::vector<DeviceId> chosen;
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(device_of(healthy_[i]));
    return chosen;
  }

  [[nodiscard]] std::vector<DeviceId> listed(const DeviceRequest& asked, const Setting<std::string>& setting) const {
    std::vector<DeviceId> chosen;
    for (const std::string& id : asked.ids) {
      const Gpu& gpu = find(id, setting);
      check_usable(gpu, id, setting);
      DeviceId device = device_of(gpu);
      // Who names a GPU by its UUID may not count as NVIDIA's driver does: CUDA puts the fastest first.
      const bool by_uuid = id.starts_with("GPU-") && node_.gpus.vendor == GpuVendor::kNvidia;
      if (by_uuid && device.id == std::to_string(gpu.index)) device.id = gpu.uuid;
      if (std::find(chosen.begin(), chosen.end(), device) != chosen.end() || names_again(chosen, gpu)) {
        throw UserError("'" + as_written(setting) + "' names GPU '" + id + "' twice", "name every GPU once");
      }
      chosen.push_back(std::move(device));
    }
    return chosen;
  }

  /// A number counts what programs see, after the launcher's own CUDA_VISIBLE_DEVICES.
  [[nodiscard]] const Gpu& find(const std::string& id, const Setting<std::string>& setting) const {
    const std::vector<Gpu>& seen = node_.gpus.gpus;
    std::size_t index = seen.size();
    if (std::from_chars(id.data(), id.data() + id.size(), index).ec != std::errc()) index = find_by_uuid(id, setting);
    if (index < seen.size()) return seen[index];
    const std::string last = std::to_string(seen.size() - 1);
    throw UserError("there is no GPU '" + id + "' of '" + as_written(setting) + "' on '" + node_.name + "'",
                    seen.size() == 1 ? "there is one, '0'" : "use those from '0' to '" + last + "'");
  }

  /// The place of the one device whose UUID begins with `id`; past the end when there is none.
  [[nodiscard]] std::size_t find_by_uuid(const std::string& id, const Setting<std::string>& setting) const {
    const std::vector<Gpu>& seen = node_.gpus.gpus;
    const auto matches = [&](const Gpu& gpu) { return gpu.uuid.starts_with(id); };
    if (const auto count = std::count_if(seen.begin(), seen.end(), matches); count > 1) {
      throw UserError(std::to_string(count) + " GPUs of '" + node_.name + "' have a UUID that begins with '" + id + "'",
                      "write more of it");
    }
    const auto divided = std::find_if(
        seen.begin(), seen.end(), [&](const Gpu& gpu) { return gpu.is_instance() && gpu.gpu_uuid.starts_with(id); });
    if (divided != seen.end()) {
      throw UserError("GPU '" + id + "' of '" + as_written(setting) + "' is in MIG mode: programs use its instances",
                      "name those, such as '" + divided->uuid + "'");
    }
    return static_cast<std::size_t>(std::find_if(seen.begin(), seen.end(), matches) - seen.begin());
  }

  static void check_usable(const Gpu& gpu, const std::string& id, const Setting<std::string>& setting) {
    const std::string what = "GPU '" + id + "' of '" + as_written(setting) + "'";
    if (gpu.lost) throw UserError(what + " is lost: the driver cannot reach it", "name others, or reset the GPU");
    if (gpu.mode != ComputeMode::kProhibited) return;
    throw UserError(what + " may not be used: its compute mode is 'prohibited'",
                    "name others, or use 'nvidia-smi -i " + std::to_string(gpu.index) + " -c DEFAULT' as root");
  }

  /// The same GPU under its other name.
  static bool names_again(const std::vector<DeviceId>& chosen, const Gpu& gpu) {
    return std::any_of(chosen.begin(), chosen.end(), [&](const DeviceId& device) { return is_named(gpu, device); });
  }

  static bool is_named(const Gpu& gpu, const DeviceId& device) {
    return device.id == gpu.visible_as || (!gpu.uuid.empty() && device.id == gpu.uuid);
  }

  const LaunchRequest& request_;
  const AllocatedNode& node_;
  std::vector<DeviceId> all_;
  std::vector<Gpu> healthy_;
};

void check_accelerator(const Setting<std::string>& accelerator) {
  static const std::vector<std::string> known = {"auto", "cpu", "gpu", "tpu"};
  if (std::find(known.begin(), known.end(), accelerator.value) != known.end()) return;
  throw choice_error("unknown accelerator '" + accelerator.value + "'", accelerator.value, known,
                     "use 'gpu', 'cpu', 'tpu' or 'auto'");
}

}  // namespace

bool is_usable(const Gpu& gpu) { return !gpu.lost && gpu.mode != ComputeMode::kProhibited; }

DeviceChoice choose_devices(const LaunchRequest& request, const AllocatedNode& node) {
  check_accelerator(request.accelerator);
  const DeviceRequest devices = read_devices(request.devices);
  const DeviceRequest processes = read_processes(request.nproc_per_node);
  const bool by_devices = devices.kind != Kind::kNone;
  const DeviceRequest& asked = by_devices ? devices : processes;
  const Setting<std::string>& setting = by_devices ? request.devices : request.nproc_per_node;
  const Chooser chooser(request, node);
  const bool on_tpus = request.accelerator.value == "tpu";
  const auto devices_for = [&](const DeviceRequest& wanted, const Setting<std::string>& from) {
    return on_tpus ? choose_tpu_chips(wanted, from, node, request.dry_run != DryRun::kNo)
                   : chooser.devices(wanted, from);
  };

  DeviceChoice choice;
  choice.devices = devices_for(asked, setting);
  choice.asked = setting;
  if (by_devices && processes.kind != Kind::kNone) {
    const std::size_t other = devices_for(processes, request.nproc_per_node).size();
    if (other != choice.devices.size()) {
      throw UserError("'" + as_written(request.devices) + "' makes " + std::to_string(choice.devices.size()) +
                          " and '" + as_written(request.nproc_per_node) + "' makes " + std::to_string(other) +
                          " on a node",
                      "give one of them");
    }
  }
  const bool gpu = choice.devices.front().kind == DeviceId::Kind::kGpu;
  choice.accelerator = {on_tpus ? "tpu" : gpu ? "gpu" : "cpu", request.accelerator.source, request.accelerator.origin};
  choice.visible_devices = chooser.visible(asked, choice.devices, by_devices);
  choice.gpu_vendor = node.gpus.vendor;
  choice.warnings = chooser.warnings(asked, setting, choice.devices);
  if (on_tpus && node.tpus.chips == 0) {
    choice.warnings.emplace_back("this host has no TPU: here this run would be refused");
  }
  for (std::string& line : chooser.judge_busy(asked, by_devices, choice.devices)) {
    choice.warnings.push_back(std::move(line));
  }
  return choice;
}

}  // namespace lrun::launcher
