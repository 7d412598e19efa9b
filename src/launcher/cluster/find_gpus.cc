#include "cluster/find_gpus.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/child_query.h"
#include "base/signal_names.h"
#include "cluster/nvml.h"
#include "cluster/nvml_library.h"
#include "cluster/other_gpus.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

Json json_of(const Gpu& gpu) {
  Json processes = Json::array();
  for (const GpuProcess& process : gpu.processes) processes.push_back({process.pid, process.memory_mib, process.name});
  return {{"index", gpu.index},
          {"uuid", gpu.uuid},
          {"visible_as", gpu.visible_as},
          {"lost", gpu.lost},
          {"gpu_uuid", gpu.gpu_uuid},
          {"name", gpu.name},
          {"pci_address", gpu.pci_address},
          {"mode", static_cast<int>(gpu.mode)},
          {"processes", std::move(processes)}};
}

Gpu gpu_of(const Json& json) {
  Gpu gpu;
  gpu.index = json.at("index").get<int>();
  gpu.uuid = json.at("uuid").get<std::string>();
  gpu.visible_as = json.at("visible_as").get<std::string>();
  gpu.lost = json.at("lost").get<bool>();
  gpu.gpu_uuid = json.at("gpu_uuid").get<std::string>();
  gpu.name = json.at("name").get<std::string>();
  gpu.pci_address = json.at("pci_address").get<std::string>();
  gpu.mode = static_cast<ComputeMode>(json.at("mode").get<int>());
  for (const Json& process : json.at("processes")) {
    gpu.processes.push_back({process.at(0).get<int>(), process.at(1).get<int>(), process.at(2).get<std::string>()});
  }
  return gpu;
}

GpuInventory failed(std::string detail) { return {GpuAnswer::kFailed, {}, std::move(detail)}; }

GpuInventory ask_nvidia(Duration limit) {
  if (!NvmlLibrary::is_likely()) return {GpuAnswer::kNoLibrary, {}, "there is no libnvidia-ml.so.1"};
  const ChildAnswer answer = query_in_child([] { return write_inventory(ask_nvml()); }, limit);
  switch (answer.end) {
    case ChildAnswer::End::kAnswered:
      if (auto inventory = read_inventory(answer.text)) return *inventory;
      return failed("the NVIDIA driver's answer cannot be read");
    case ChildAnswer::End::kTimedOut:
      return failed("the NVIDIA driver did not answer within " + format_duration(limit));
    case ChildAnswer::End::kNotStarted:
      return failed("could not start a process to query the NVIDIA driver");
    case ChildAnswer::End::kCrashed:
      break;
  }
  const std::string how = answer.signal_number == 0 ? "exited" : "was killed by " + signal_name(answer.signal_number);
  return failed("the process that queried the NVIDIA driver " + how);
}

}  // namespace

GpuInventory find_gpus(Duration limit) {
  GpuInventory nvidia = ask_nvidia(limit);
  if (!nvidia.gpus.empty()) return nvidia;  // images with NVIDIA's library run on other machines too
  if (auto amd = find_amd_gpus()) return *amd;
  if (auto intel = find_intel_gpus()) return *intel;
  return nvidia;
}

std::string write_inventory(const GpuInventory& inventory) {
  Json gpus = Json::array();
  for (const Gpu& gpu : inventory.gpus) gpus.push_back(json_of(gpu));
  const Json json = {{"answer", static_cast<int>(inventory.answer)}, {"gpus", gpus}, {"detail", inventory.detail}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::optional<GpuInventory> read_inventory(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    GpuInventory inventory;
    inventory.answer = static_cast<GpuAnswer>(json.at("answer").get<int>());
    inventory.detail = json.at("detail").get<std::string>();
    for (const Json& gpu : json.at("gpus")) inventory.gpus.push_back(gpu_of(gpu));
    return inventory;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
