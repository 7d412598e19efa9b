// Compares the devices that were asked for with those that a node has. A LaunchRequest and an AllocatedNode come in, a
// DeviceChoice goes out. run_nodes and task_place call choose_devices().
#include "plan/device_choice.h"

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"
#include "plan/busy_gpus.h"
#include "plan/named_value.h"
#include "plan/personality.h"
#include "plan/tpu_choice.h"

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;

std::string count_or_no(std::size_t count, const std::string& what) {
  return count == 0 ? "no " + what : counted(count, what);
}

std::vector<DeviceId> cpu_ranks(int count) {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) devices.push_back({DeviceKind::kCpu, std::to_string(index)});
  return devices;
}

std::string joined(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId& device : devices) text += (text.empty() ? "" : ",") + device.id;
  return text;
}

/// '--devices 2', for hints: the same option with a plain count. A selection of hosts takes no count.
std::string two_as_written(const Setting<DeviceRequest>& asked, const std::string& node) {
  const std::string& origin = asked.origin;
  if (origin == "--include" || origin == "--exclude") return as_written("--devices", "2");
  const bool selects_of_host = origin.starts_with("--include") || origin.starts_with(kLeftByExclude);
  return as_written(selects_of_host ? origin_of_host("-H", node) : origin, "2");
}

/// Words that mean the GPUs of one vendor. ROCm's LibTorch says 'cuda', too.
constexpr NamedValue<GpuVendor> kVendorWords[] = {{"rocm", GpuVendor::kAmd}, {"xpu", GpuVendor::kIntel}};
constexpr NamedValue<GpuVendor> kVendors[] = {{"AMD", GpuVendor::kAmd}, {"Intel", GpuVendor::kIntel}};

/// Compares what was asked for with one node. Lives for the duration of a choice.
class Chooser {
 public:
  Chooser(const LaunchRequest& request, const AllocatedNode& node) : request_(request), node_(node) {
    for (const Gpu& gpu : node.gpus.gpus) {
      all_.push_back(device_of(gpu));
      if (is_usable(gpu)) healthy_.push_back(gpu);
    }
  }

  [[nodiscard]] std::vector<DeviceId> devices(const Setting<DeviceRequest>& asked) const {
    if (!on_gpus(asked)) return cpus(asked);
    check_vendor(asked);
    return gpus(asked);
  }

  /// Workers see fewer GPUs than lrun only where the user picked some. torchrun's count and the default leave the
  /// variable alone, unless workers would then count a lost GPU.
  [[nodiscard]] std::optional<std::string> visible(const DeviceRequest& asked, const std::vector<DeviceId>& chosen,
                                                   bool by_devices) const {
    if (chosen.front().kind != DeviceKind::kGpu) return std::nullopt;
    const bool first_ones = chosen.size() <= all_.size() && std::equal(chosen.begin(), chosen.end(), all_.begin());
    const bool picked = asked.kind == Kind::kList || (by_devices && chosen != all_);
    return picked || !first_ones ? std::optional(joined(chosen)) : std::nullopt;
  }

  /// Warnings about busy GPUs among `chosen`. \throws UserError  one of them may not be used
  [[nodiscard]] std::vector<std::string> judge_busy(const DeviceRequest& asked, bool by_devices,
                                                    const std::vector<DeviceId>& chosen) const {
    std::vector<std::string> lines;
    const bool gpus_wanted = by_devices || asked.needs_gpus() || request_.accelerator.value == DeviceKind::kGpu;
    const bool refuses = gpus_wanted && personality_of(request_.compat).refuse_busy_gpus;
    for (std::size_t place = 0; place < node_.gpus.gpus.size(); ++place) {
      const Gpu& gpu = node_.gpus.gpus[place];
      const bool uses = chosen.front().kind == DeviceKind::kGpu && names_again(chosen, gpu);
      if (!uses || gpu.processes.empty() || (request_.share_gpus && !is_taken(gpu))) continue;
      std::string line = "GPU '" + std::to_string(place) + "' of '" + node_.name + "' is busy: " + why_busy(gpu);
      if (refuses) throw UserError(line, busy_hint(node_, chosen.size(), is_taken(gpu)));
      lines.push_back(std::move(line));
    }
    return lines;
  }

  [[nodiscard]] std::vector<std::string> warnings(const Setting<DeviceRequest>& asked,
                                                  const std::vector<DeviceId>& chosen) const {
    std::vector<std::string> lines;
    const bool gpu = chosen.front().kind == DeviceKind::kGpu;
    if (gpu && healthy_.size() < all_.size()) {
      lines.push_back(count_or_no(all_.size() - healthy_.size(), "GPU") + " of '" + node_.name +
                      "' not used: " + node_.gpus.detail);
    }
    if (!gpu && asked.value.kind == Kind::kProcesses && !request_.accelerator.value && !healthy_.empty()) {
      lines.push_back("'" + as_written(asked) + "' is more than the " + count_or_no(healthy_.size(), "GPU") + " of '" +
                      node_.name + "': no worker gets a GPU of its own");
    }
    const bool refused = node_.gpus.answer == GpuAnswer::kFailed || node_.gpus.answer == GpuAnswer::kDriverNotLoaded;
    if (!gpu && refused && !request_.accelerator.value) lines.push_back("using CPUs: " + node_.gpus.detail);
    return lines;
  }

 private:
  static DeviceId device_of(const Gpu& gpu) { return {DeviceKind::kGpu, gpu.visible_as, gpu.numa_node}; }

  /// 'this host has no GPU: there is no libnvidia-ml.so.1'
  [[nodiscard]] std::string why_none() const {
    std::string text = "'" + node_.name + "' has no GPU";
    if (!all_.empty()) text = "no GPU of '" + node_.name + "' works";
    return node_.gpus.detail.empty() ? text : text + ": " + node_.gpus.detail;
  }

  [[nodiscard]] bool on_gpus(const Setting<DeviceRequest>& asked) const {
    const bool only_gpus = asked.value.needs_gpus();
    if (request_.accelerator.value == DeviceKind::kCpu) {
      if (!only_gpus) return false;
      throw UserError(
          "'" + as_written(asked) + "' names GPUs, and '" + accelerator_as_written(request_) + "' excludes them",
          "use '" + two_as_written(asked, node_.name) + "' for two CPU ranks, or '--accelerator gpu'");
    }
    if (request_.accelerator.value == DeviceKind::kGpu) {
      const auto vendor = value_in(kVendorWords, lower_case(request_.accelerator_word));
      const bool is_other = vendor && *vendor != node_.gpus.vendor;
      if (!healthy_.empty() && !is_other) return true;
      throw UserError("'" + accelerator_as_written(request_) + "' is not available: " +
                          (is_other ? "'" + node_.name + "' has no GPU of " + name_in(kVendors, *vendor) : why_none()),
                      "use '--accelerator cpu'" + std::string(healthy_.empty() ? "" : ", or '--accelerator gpu'"));
    }
    if (only_gpus) {
      if (!healthy_.empty()) return true;
      throw UserError("'" + as_written(asked) + "' names GPUs, and " + why_none(),
                      "use '" + two_as_written(asked, node_.name) + "' for two CPU ranks");
    }
    const DeviceRequest& request = asked.value;
    if (request.kind == Kind::kCpuCount || healthy_.empty()) return false;
    const bool too_many = request.kind == Kind::kProcesses && static_cast<std::size_t>(request.count) > healthy_.size();
    return !too_many || request_.isolate_gpus;  // one GPU a worker leaves no choice: gpus() refuses
  }

  void check_vendor(const Setting<DeviceRequest>& asked) const {
    if (asked.value.kind != Kind::kXpuCount || node_.gpus.vendor == GpuVendor::kIntel) return;
    throw UserError("'" + as_written(asked) + "' needs GPUs of Intel, and those of '" + node_.name + "' are not",
                    "use '" + as_written(asked.origin, "gpu") + "'");
  }

  [[nodiscard]] std::vector<DeviceId> cpus(const Setting<DeviceRequest>& asked) const {
    switch (asked.value.kind) {
      case Kind::kNone:
      case Kind::kAuto:
        return cpu_ranks(1);
      case Kind::kCount:
      case Kind::kProcesses:
        return cpu_ranks(asked.value.count);
      case Kind::kAutoCount:
      case Kind::kCpuCount:
        return cpu_ranks(node_.cpus);
      case Kind::kAllGpus:
      case Kind::kGpuCount:
      case Kind::kXpuCount:
      case Kind::kList:
        break;
    }
    throw std::logic_error("on_gpus() has refused '" + as_written(asked) + "'");
  }

  [[nodiscard]] std::vector<DeviceId> gpus(const Setting<DeviceRequest>& asked) const {
    const DeviceRequest& request = asked.value;
    if (request.kind == Kind::kList) return listed(asked);
    std::size_t count = healthy_.size();
    if (!request.given()) count = 1;
    if (request.number()) count = static_cast<std::size_t>(*request.number());
    if (request.kind == Kind::kCpuCount) count = static_cast<std::size_t>(node_.cpus);
    if (count > healthy_.size()) {
      throw UserError("'" + as_written(asked) + "' asks for " + count_or_no(count, "device") + ", but '" + node_.name +
                          "' has " + count_or_no(healthy_.size(), "GPU"),
                      "use '" + as_written(asked.origin, std::to_string(healthy_.size())) +
                          "', or '--accelerator cpu' for " + count_or_no(count, "CPU rank"));
    }
    std::vector<DeviceId> chosen;
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(device_of(healthy_[i]));
    return chosen;
  }

  [[nodiscard]] std::vector<DeviceId> listed(const Setting<DeviceRequest>& asked) const {
    std::vector<DeviceId> chosen;
    for (const std::string& id : asked.value.ids) {
      const Gpu& gpu = find(id, asked);
      check_usable(gpu, id, asked);
      DeviceId device = device_of(gpu);
      // A GPU that was named by its UUID stays named so: CUDA may count in another order than NVIDIA's driver.
      const bool by_uuid = id.starts_with("GPU-") && node_.gpus.vendor == GpuVendor::kNvidia;
      if (by_uuid && device.id == std::to_string(gpu.index)) device.id = gpu.uuid;
      if (std::find(chosen.begin(), chosen.end(), device) != chosen.end() || names_again(chosen, gpu)) {
        throw UserError("'" + as_written(asked) + "' names GPU '" + id + "' twice", "name every GPU once");
      }
      chosen.push_back(std::move(device));
    }
    return chosen;
  }

  /// A number counts what programs see, after the launcher's own CUDA_VISIBLE_DEVICES.
  [[nodiscard]] const Gpu& find(const std::string& id, const Setting<DeviceRequest>& asked) const {
    const std::vector<Gpu>& seen = node_.gpus.gpus;
    std::size_t index = seen.size();
    if (std::from_chars(id.data(), id.data() + id.size(), index).ec != std::errc()) index = find_by_uuid(id, asked);
    if (index < seen.size()) return seen[index];
    const std::string last = std::to_string(seen.size() - 1);
    throw UserError("there is no GPU '" + id + "' of '" + as_written(asked) + "' on '" + node_.name + "'",
                    seen.size() == 1 ? "there is one, '0'" : "use '0' to '" + last + "'");
  }

  /// The place of the one device whose UUID begins with `id`; past the end when there is none.
  [[nodiscard]] std::size_t find_by_uuid(const std::string& id, const Setting<DeviceRequest>& asked) const {
    const std::vector<Gpu>& seen = node_.gpus.gpus;
    const auto matches = [&](const Gpu& gpu) { return gpu.uuid.starts_with(id); };
    if (const auto count = std::count_if(seen.begin(), seen.end(), matches); count > 1) {
      throw UserError(std::to_string(count) + " GPUs of '" + node_.name + "' have a UUID that begins with '" + id + "'",
                      "write more of the UUID");
    }
    const auto divided = std::find_if(
        seen.begin(), seen.end(), [&](const Gpu& gpu) { return gpu.is_instance() && gpu.gpu_uuid.starts_with(id); });
    if (divided != seen.end()) {
      throw UserError("GPU '" + id + "' of '" + as_written(asked) + "' is in MIG mode: programs use its instances",
                      "name those, such as '" + divided->uuid + "'");
    }
    return static_cast<std::size_t>(std::find_if(seen.begin(), seen.end(), matches) - seen.begin());
  }

  static void check_usable(const Gpu& gpu, const std::string& id, const Setting<DeviceRequest>& asked) {
    const std::string what = "GPU '" + id + "' of '" + as_written(asked) + "'";
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

}  // namespace

std::string accelerator_as_written(const LaunchRequest& request) {
  if (request.accelerator_word.empty()) return as_written(request.accelerator);
  return as_written(request.accelerator.origin, request.accelerator_word);
}

bool is_usable(const Gpu& gpu) { return !gpu.lost && gpu.mode != ComputeMode::kProhibited; }

DeviceChoice choose_devices(const LaunchRequest& request, const AllocatedNode& node) {
  const bool by_devices = request.devices.given();
  const Setting<DeviceRequest>& asked = by_devices ? request.devices : request.nproc_per_node;
  const Chooser chooser(request, node);
  const bool on_tpus = request.accelerator.value == DeviceKind::kTpu;
  const auto devices_for = [&](const Setting<DeviceRequest>& wanted) {
    return on_tpus ? choose_tpu_chips(wanted, node, request.dry_run != DryRun::kNo) : chooser.devices(wanted);
  };

  DeviceChoice choice;
  choice.devices = devices_for(asked);
  choice.asked = asked;
  if (by_devices && request.nproc_per_node.given()) {
    const std::size_t other = devices_for(request.nproc_per_node).size();
    if (other != choice.devices.size()) {
      throw UserError("'" + as_written(request.devices) + "' gives " + std::to_string(choice.devices.size()) +
                          " and '" + as_written(request.nproc_per_node) + "' gives " + std::to_string(other) +
                          " workers per node",
                      "give one of them");
    }
  }
  choice.accelerator = {choice.devices.front().kind, request.accelerator.source, request.accelerator.origin};
  choice.visible_devices = chooser.visible(asked.value, choice.devices, by_devices);
  choice.gpu_vendor = node.gpus.vendor;
  choice.warnings = chooser.warnings(asked, choice.devices);
  if (on_tpus && node.tpus.chips == 0) {
    choice.warnings.emplace_back("this host has no TPU: the run would be refused here");
  }
  for (std::string& line : chooser.judge_busy(asked.value, by_devices, choice.devices)) {
    choice.warnings.push_back(std::move(line));
  }
  return choice;
}

}  // namespace lrun::launcher
