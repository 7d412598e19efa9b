#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lrun::launcher {

/// The kind of the devices on which workers compute.
enum class DeviceKind { kCpu, kGpu, kTpu };

/// 'cpu', 'gpu' or 'tpu'
std::string text_of(DeviceKind kind);

/// The value of --devices or --nproc-per-node, or what a list of hosts says of one host. It was read once and is not
/// yet compared with a machine.
struct DeviceRequest {
  enum class Kind {
    kNone,       ///< not given
    kAuto,       ///< --devices auto
    kAllGpus,    ///< --devices -1
    kList,       ///< --devices 2,3
    kCount,      ///< --devices 8
    kProcesses,  ///< --nproc-per-node 8
    kAutoCount,  ///< --nproc-per-node auto
    kCpuCount,   ///< --nproc-per-node cpu
    kGpuCount,   ///< --nproc-per-node gpu
    kXpuCount,   ///< --nproc-per-node xpu: GPUs of Intel
  };
  Kind kind = Kind::kNone;
  int count = 0;                      ///< of kCount and kProcesses, at least 1
  std::vector<std::string> ids = {};  ///< of kList: distinct numbers or UUIDs, not empty

  [[nodiscard]] bool given() const { return kind != Kind::kNone; }
  /// The number of devices that was asked for, where it is a number.
  [[nodiscard]] std::optional<int> number() const;
  /// CPUs cannot stand in for what was asked for.
  [[nodiscard]] bool needs_gpus() const;

  bool operator==(const DeviceRequest&) const = default;
};

/// The request as its option takes it: '8', '2,3', '2,' (device 2 alone), 'auto', '-1', 'cpu'. Empty for kNone.
std::string text_of(const DeviceRequest& request);

/// The reason why a text is not a value of --devices.
struct DeviceProblem {
  std::string what;
  std::string example;  ///< a correct value; empty: `hint` has what to do
  std::string hint = {};
};

/// Whether a text names devices instead of counting them: '2,3', 'GPU-1c2d'.
bool is_device_list(std::string_view text);

/// Reads '8', '2,3', '2,', 'auto' or '-1'. A list may hold UUIDs such as 'GPU-1c2d' or 'MIG-41c9'. Blanks, quotes and
/// empty fields of a list do not matter. \param most  the largest count, and one more than the largest number.
std::variant<DeviceRequest, DeviceProblem> parse_devices(std::string_view text, int most);

}  // namespace lrun::launcher
