#include "plan/device_request.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;

constexpr int kMostPerNode = 65'536;  // far above any machine; a typing mistake must not become a plan of gigabytes
constexpr const char* kAllowedDevices = "use a count, 'auto', '-1' for all GPUs, or a list such as '2,3'";
constexpr std::string_view kOfHost = ", ";
constexpr const char* kAllowedProcesses = "use a count, 'auto', 'cpu', 'gpu' or 'xpu'";

int checked_count(const Setting<std::string>& setting, long number, const char* allowed) {
  if (number < 1) throw UserError("'" + as_written(setting) + "' asks for no device at all", allowed);
  if (number > kMostPerNode) {
    throw UserError("'" + as_written(setting) + "' is more than one node can have",
                    "at most " + std::to_string(kMostPerNode) + " workers on a node");
  }
  return static_cast<int>(number);
}

/// '1, 3' and '2,': empty fields are left out, as Lightning does.
DeviceRequest read_list(const Setting<std::string>& setting) {
  DeviceRequest request{Kind::kList, 0, {}};
  std::string_view rest = setting.value;
  while (true) {
    const auto comma = rest.find(',');
    const std::string id(trimmed(rest.substr(0, comma)));
    const auto index = whole_number<long>(id);
    if (!id.empty() && !id.starts_with("GPU-") && !id.starts_with("MIG-") && (!index || *index < 0)) {
      throw UserError("'" + id + "' in '" + as_written(setting) + "' is not the number of a GPU", kAllowedDevices);
    }
    const std::string name = index ? std::to_string(*index) : id;
    if (std::find(request.ids.begin(), request.ids.end(), name) != request.ids.end()) {
      throw UserError("'" + as_written(setting) + "' names GPU '" + name + "' twice", "name every GPU once");
    }
    if (!name.empty()) request.ids.push_back(name);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (request.ids.empty()) throw UserError("'" + as_written(setting) + "' names no device", kAllowedDevices);
  return request;
}

}  // namespace

std::string origin_of_host(const std::string& origin, const std::string& host) {
  return origin + std::string(kOfHost) + host;
}

std::string as_written(const Setting<std::string>& setting) {
  if (const auto of_host = setting.origin.find(kOfHost); of_host != std::string::npos) {
    const bool is_option = setting.origin.starts_with('-');
    return setting.origin.substr(0, of_host) + (is_option ? " " : ": ") +
           setting.origin.substr(of_host + kOfHost.size()) + ":" + std::string(trimmed(setting.value, ","));
  }
  return setting.origin + (setting.origin.starts_with('-') ? " " : "=") + setting.value;
}

DeviceRequest read_devices(const Setting<std::string>& devices) {
  if (!devices.given()) return {};
  const std::string_view text = trimmed(devices.value);
  if (text == "auto") return {Kind::kAuto, 0, {}};
  if (text == "-1") return {Kind::kAllGpus, 0, {}};
  if (const auto number = whole_number<long>(text))
    return {Kind::kCount, checked_count(devices, *number, kAllowedDevices), {}};
  if (text.find(',') != std::string_view::npos || text.starts_with("GPU-") || text.starts_with("MIG-")) {
    return read_list(devices);
  }
  throw choice_error("'" + as_written(devices) + "' is not a number of devices", text, {"auto"}, kAllowedDevices);
}

DeviceRequest read_processes(const Setting<std::string>& nproc_per_node) {
  if (!nproc_per_node.given()) return {};
  const std::string_view text = trimmed(nproc_per_node.value);
  if (text == "auto") return {Kind::kAutoCount, 0, {}};
  if (text == "cpu") return {Kind::kCpuCount, 0, {}};
  if (text == "gpu") return {Kind::kAllGpus, 0, {}};
  if (text == "xpu") return {Kind::kAllGpus, 0, {}, GpuVendor::kIntel};
  if (const auto number = whole_number<long>(text)) {
    return {Kind::kProcesses, checked_count(nproc_per_node, *number, kAllowedProcesses), {}};
  }
  throw choice_error("'" + as_written(nproc_per_node) + "' is not a number of workers", text,
                     {"auto", "cpu", "gpu", "xpu"}, kAllowedProcesses);
}

}  // namespace lrun::launcher
