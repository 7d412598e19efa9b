// Reads the value of --devices, of a list of hosts or of --include into a DeviceRequest and writes it again. The
// readers of options call it; planning works with the value.
#include "cluster/device_request.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/split.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;
using Parsed = std::variant<DeviceRequest, DeviceProblem>;

/// People copy "0, 2" with its quotes from YAML and JSON. A blank between two words stays: '2 4' is not 24.
std::string without_blanks_and_quotes(std::string_view text) {
  std::string bare;
  bool blank = false;
  for (const char letter : text) {
    if (letter == '"' || letter == '\'') continue;
    if (letter == ' ' || letter == '\t') {
      blank = true;
      continue;
    }
    if (blank && !bare.empty() && bare.back() != ',' && letter != ',') bare += ' ';
    blank = false;
    bare += letter;
  }
  return bare;
}

/// The names that NVIDIA's driver gives to a GPU or a part of one.
bool is_uuid(std::string_view text) { return text.starts_with("GPU-") || text.starts_with("MIG-"); }

Parsed parse_list(std::string_view list, int most) {
  DeviceRequest request{Kind::kList};
  while (!list.empty()) {
    const std::string field(cut(list, ','));
    if (field.empty()) continue;
    const auto number = natural_number(field);
    if (!is_uuid(field) && (!number || *number >= most)) {
      return DeviceProblem{"'" + field + "' is not the number of a device", "0,2"};
    }
    const std::string id = number ? std::to_string(*number) : field;  // '01' is device 1
    if (std::find(request.ids.begin(), request.ids.end(), id) != request.ids.end()) {
      return DeviceProblem{"names device " + id + " twice", {}, "name every device once"};
    }
    request.ids.push_back(id);
  }
  if (request.ids.empty()) return DeviceProblem{"names no device", "8"};
  return request;
}

/// '0,2' for '0 2', '0,1,2' for '0-2', and '1,' for 'cuda:1'. Empty for anything else.
std::string list_meant_by(std::string_view text) {
  constexpr int kMost = 64;
  if (text.find(' ') != std::string_view::npos && text.find_first_not_of(" 0123456789") == std::string_view::npos) {
    std::string list(text);
    std::replace(list.begin(), list.end(), ' ', ',');
    return list;
  }
  const std::size_t colon = text.find(':');
  const auto device = colon == std::string_view::npos ? std::nullopt : natural_number(text.substr(colon + 1));
  if (device) return std::to_string(*device) + ",";
  const std::string_view begin = cut(text, '-');
  const auto first = natural_number(begin);
  const auto last = natural_number(text);
  if (!first || !last || *first >= *last || *last > kMost) return {};
  std::string list = std::to_string(*first);
  for (int id = *first + 1; id <= *last; ++id) list += "," + std::to_string(id);
  return list;
}

/// For what is neither a count nor a list; empty when nothing is near.
std::string hint_about(const std::string& text) {
  if (const std::string list = list_meant_by(text); !list.empty()) {
    const bool is_one = list.ends_with(',');
    return did_you_mean(list) + (is_one ? " the comma makes it a device, and no number of devices" : "");
  }
  if (text == "cpu" || text == "tpu") return "'--accelerator " + text + "' is the kind, and '--devices' how many";
  if (text == "all") return did_you_mean("auto") + " it is all GPUs, or one worker where there is none";
  if (text == "gpu" || text == "gpus" || text == "cuda") return did_you_mean("-1");
  return nearest_hint(text, {"auto"});
}

}  // namespace

std::string text_of(DeviceKind kind) {
  return kind == DeviceKind::kCpu ? "cpu" : kind == DeviceKind::kGpu ? "gpu" : "tpu";
}

std::optional<int> DeviceRequest::number() const {
  return kind == Kind::kCount || kind == Kind::kProcesses ? std::optional(count) : std::nullopt;
}

bool DeviceRequest::needs_gpus() const {
  return kind == Kind::kAllGpus || kind == Kind::kList || kind == Kind::kGpuCount || kind == Kind::kXpuCount;
}

std::string text_of(const DeviceRequest& request) {
  switch (request.kind) {
    case Kind::kNone:
      return {};
    case Kind::kAllGpus:
      return "-1";
    case Kind::kCount:
    case Kind::kProcesses:
      return std::to_string(request.count);
    case Kind::kAuto:
    case Kind::kAutoCount:
      return "auto";
    case Kind::kCpuCount:
      return "cpu";
    case Kind::kGpuCount:
      return "gpu";
    case Kind::kXpuCount:
      return "xpu";
    case Kind::kList:
      break;
  }
  std::string text;
  for (const std::string& id : request.ids) text += (text.empty() ? "" : ",") + id;
  return request.ids.size() == 1 ? text + "," : text;  // '2' would be two devices
}

bool is_device_list(std::string_view text) {
  const std::string bare = without_blanks_and_quotes(text);
  return bare.find(',') != std::string::npos || is_uuid(bare);
}

Parsed parse_devices(std::string_view text, int most) {
  const std::string bare = without_blanks_and_quotes(text);
  if (bare == "auto") return DeviceRequest{Kind::kAuto};
  if (bare == "-1") return DeviceRequest{Kind::kAllGpus};
  if (bare.empty()) return DeviceProblem{"names no device", "8"};
  if (is_device_list(bare)) return parse_list(bare, most);
  const auto count = whole_number<int>(bare);
  if (!count) {
    const std::string hint = hint_about(lower_case(bare));
    return DeviceProblem{"neither a count nor a list of devices", hint.empty() ? "2" : "", hint};
  }
  if (*count == 0)
    return DeviceProblem{"asks for no device",
                         {},
                         "it is a number of devices, such as '1'; the device with the number 0 is '0,', and lists have "
                         "commas, as '0,1'"};
  if (*count < 0) return DeviceProblem{"out of range", {}, "'-1' is all GPUs"};
  if (*count > most) return DeviceProblem{"more than " + std::to_string(most) + " devices", std::to_string(most)};
  return DeviceRequest{Kind::kCount, *count};
}

}  // namespace lrun::launcher
