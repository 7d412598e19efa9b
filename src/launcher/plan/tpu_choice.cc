// The chips of TPUs that a run uses, and the mesh that they form. device_choice calls choose_tpu_chips(); make_plan()
// and questions_of() call with_tpu_settled() first of all.
#include "plan/tpu_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "plan/device_choice.h"

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;

constexpr const char* kTrial = "'--accelerator cpu' takes torch_xla's CPU device, for a trial";

DeviceId chip(std::size_t index) { return {DeviceKind::kTpu, std::to_string(index)}; }

std::size_t number_of(const std::string& id, const Setting<DeviceRequest>& asked) {
  if (const auto number = whole_number<std::size_t>(id)) return *number;
  throw UserError(fmt::format("'{}' of '{}' is not the number of a TPU chip", id, as_written(asked)),
                  "chips are counted from 0");
}

/// The number of chips that have to be there: the count, or all up to the last one of a list.
std::size_t chips_needed(const Setting<DeviceRequest>& asked, std::size_t there) {
  switch (asked.value.kind) {
    case Kind::kNone:
      return 1;
    case Kind::kCount:
    case Kind::kProcesses:
      return static_cast<std::size_t>(asked.value.count);
    case Kind::kAuto:
    case Kind::kAllGpus:
    case Kind::kAutoCount:
    case Kind::kGpuCount:
    case Kind::kXpuCount:
      return std::max<std::size_t>(there, 1);
    case Kind::kCpuCount:
      throw UserError(fmt::format("'{}' counts CPUs, and the workers are on TPUs", as_written(asked)),
                      "use '--devices -1' for all chips");
    case Kind::kList:
      break;
  }
  std::size_t most = 0;
  for (const std::string& id : asked.value.ids) most = std::max(most, number_of(id, asked) + 1);
  return most;
}

[[noreturn]] void refuse_too_many(std::size_t needed, const Setting<DeviceRequest>& asked, const AllocatedNode& node) {
  const auto there = static_cast<std::size_t>(node.tpus.chips);
  const std::string cores = node.tpus.cores_per_chip > 1
                                ? fmt::format(" ({} cores: a worker drives those of its chip)",
                                              there * static_cast<std::size_t>(node.tpus.cores_per_chip))
                                : std::string();
  throw UserError(fmt::format("'{}' asks for {}, but '{}' has {}{}", as_written(asked), counted(needed, "TPU chip"),
                              node.name, there, cores),
                  fmt::format("use '{}'", as_written(asked.origin, std::to_string(there))));
}

/// libtpu numbers the chips of a mesh in a row, from a multiple of their number.
bool is_mesh(const std::vector<DeviceId>& chips) {
  if (tpu_process_bounds(chips.size()).empty()) return false;
  const auto first = static_cast<std::size_t>(std::stoul(chips.front().id));
  if (first % chips.size() != 0) return false;
  for (std::size_t i = 0; i < chips.size(); ++i) {
    if (chips[i].id != std::to_string(first + i)) return false;
  }
  return true;
}

}  // namespace

LaunchRequest with_tpu_settled(LaunchRequest request, const Environment& environment) {
  auto& [strategy, strategy_source, strategy_origin] = request.strategy;
  auto& [accelerator, accelerator_source, accelerator_origin] = request.accelerator;
  if (accelerator == DeviceKind::kTpu && !strategy) {
    request.strategy = {Strategy::kTpu, accelerator_source, accelerator_origin};
  }
  if (accelerator == DeviceKind::kTpu && strategy != Strategy::kTpu) {
    throw UserError(fmt::format("strategy '{}' does not run on TPUs, which '{}' asks for", text_of(strategy),
                                accelerator_as_written(request)),
                    "use '--strategy tpu'");
  }
  if (strategy != Strategy::kTpu) return request;
  if (accelerator == DeviceKind::kGpu) {
    throw UserError(
        fmt::format("strategy 'tpu' does not run on GPUs, which '{}' asks for", accelerator_as_written(request)),
        kTrial);
  }
  if (accelerator) return request;
  const std::string device = environment.get("PJRT_DEVICE").value_or("");
  if (device == "CPU") {
    request.accelerator = {DeviceKind::kCpu, Source::kEnvironment, "PJRT_DEVICE"};
  } else if (device.empty() || device == "TPU") {
    request.accelerator = {DeviceKind::kTpu, strategy_source, strategy_origin};
  } else {
    throw UserError(fmt::format("'PJRT_DEVICE={}' and strategy 'tpu' contradict each other", device), "unset it");
  }
  return request;
}

std::vector<DeviceId> choose_tpu_chips(const Setting<DeviceRequest>& asked, const AllocatedNode& node, bool dry_run) {
  const auto there = static_cast<std::size_t>(node.tpus.chips);
  if (there == 0 && !dry_run) {
    throw UserError(fmt::format("'{}' has no TPU on its PCI bus", node.name), kTrial);
  }
  const std::size_t needed = chips_needed(asked, there);
  if (there > 0 && needed > there) refuse_too_many(needed, asked, node);
  std::vector<DeviceId> chosen;
  if (asked.value.kind != Kind::kList) {
    for (std::size_t index = 0; index < needed; ++index) chosen.push_back(chip(index));
    return chosen;
  }
  for (const std::string& id : asked.value.ids) chosen.push_back(chip(number_of(id, asked)));
  return chosen;
}

void check_tpu_mesh(const std::vector<AllocatedNode>& nodes, const std::vector<DeviceChoice>& choices) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<DeviceId>& chips = choices[i].devices;
    if (chips.front().kind != DeviceKind::kTpu) return;
    const auto there = static_cast<std::size_t>(nodes[i].tpus.chips);
    if (nodes.size() > 1 && there > 0 && chips.size() != there) {
      throw UserError(fmt::format("a TPU pod needs all of its chips: of the {} of '{}' only {} would be used",
                                  counted(there, "TPU chip"), nodes[i].name, chips.size()),
                      "use '--devices -1'");
    }
    if (nodes.size() == 1 && !is_mesh(chips)) {
      throw UserError(
          fmt::format("these {} of '{}' do not form a mesh", counted(chips.size(), "TPU chip"), nodes[i].name),
          "use 1, 2, 4 or 8 adjacent chips, such as '--devices 4' or '--devices 4,5'");
    }
  }
}

std::string tpu_process_bounds(std::size_t chips) {
  switch (chips) {
    case 1:
      return "1,1,1";
    case 2:
      return "1,2,1";
    case 4:
      return "2,2,1";
    case 8:
      return "2,4,1";
    default:
      return {};
  }
}

}  // namespace lrun::launcher
