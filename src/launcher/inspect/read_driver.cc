// In: a time limit. Out: facts of the NVIDIA driver that the inventory of GPUs lacks. Called by read_machine(). NVML is
// asked in a forked child, because a driver may hang or crash.
#include "inspect/read_driver.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/child_query.h"
#include "cluster/nvml_library.h"
#include "cluster/system_file.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

constexpr unsigned kMostGpus = 64;

/// The text of an nvmlGpuP2PStatus_t.
std::string p2p_reason(int status) {
  switch (status) {
    case 1:
      return "the chipset does not support it";
    case 2:
      return "the GPUs do not support it";
    case 3:
      return "the connection between them does not support it";
    case 4:
      return "disabled in the driver";
    default:
      return "the driver gives no reason";
  }
}

void add_pairs(const NvmlLibrary& nvml, const std::vector<NvmlLibrary::Device>& gpus, Json& facts) {
  constexpr int kRead = 0;  // NVML_P2P_CAPS_INDEX_READ
  int pairs = 0;
  for (std::size_t first = 0; first < gpus.size(); ++first) {
    for (std::size_t second = first + 1; second < gpus.size(); ++second) {
      int status = 0;
      if (nvml.p2p_status(gpus[first], gpus[second], kRead, &status) != NvmlLibrary::kSuccess) continue;
      ++pairs;
      if (status != 0) facts["blocked"].push_back({first, second, p2p_reason(status)});
    }
  }
  facts["pairs"] = pairs;
}

/// Runs in the child.
std::string driver_facts_text() {
  Json facts = {{"library", ""}, {"cuda", 0}, {"pairs", 0}, {"blocked", Json::array()}, {"reset", Json::array()}};
  const std::optional<NvmlLibrary> nvml = NvmlLibrary::open();
  if (!nvml || nvml->init() != NvmlLibrary::kSuccess) return facts.dump();
  char version[96] = {};
  int cuda = 0;
  if (nvml->driver_version != nullptr && nvml->driver_version(version, sizeof version) == NvmlLibrary::kSuccess) {
    facts["library"] = version;
  }
  if (nvml->cuda_version != nullptr && nvml->cuda_version(&cuda) == NvmlLibrary::kSuccess) facts["cuda"] = cuda;
  unsigned count = 0;
  if (nvml->count(&count) != NvmlLibrary::kSuccess) count = 0;
  std::vector<NvmlLibrary::Device> gpus;
  for (unsigned index = 0; index < std::min(count, kMostGpus); ++index) {
    NvmlLibrary::Device gpu = nullptr;
    if (nvml->handle(index, &gpu) != NvmlLibrary::kSuccess) continue;
    gpus.push_back(gpu);
    unsigned numbers[4] = {};  // corrected, uncorrected, pending, failure
    if (nvml->remapped_rows != nullptr &&
        nvml->remapped_rows(gpu, &numbers[0], &numbers[1], &numbers[2], &numbers[3]) == NvmlLibrary::kSuccess &&
        numbers[2] != 0) {
      facts["reset"].push_back(index);
    }
  }
  if (nvml->p2p_status != nullptr) add_pairs(*nvml, gpus, facts);
  nvml->shutdown();
  return facts.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void read_answer(const std::string& text, DriverFacts& driver) {
  const Json facts = Json::parse(text);
  driver.library = facts.at("library").get<std::string>();
  driver.cuda = facts.at("cuda").get<int>();
  driver.pairs = facts.at("pairs").get<int>();
  driver.waiting_for_reset = facts.at("reset").get<std::vector<int>>();
  for (const Json& pair : facts.at("blocked")) {
    driver.blocked.push_back({pair.at(0).get<int>(), pair.at(1).get<int>(), pair.at(2).get<std::string>()});
  }
}

}  // namespace

DriverFacts read_driver(Duration limit) {
  DriverFacts driver;
  if (!NvmlLibrary::is_likely()) return driver;
  const ChildAnswer answer = query_in_child(driver_facts_text, limit);
  if (answer.end == ChildAnswer::End::kAnswered) read_answer(answer.text, driver);
  driver.kernel = read_line("/sys/module/nvidia/version");
  driver.listed = static_cast<int>(list_names("/proc/driver/nvidia/gpus").size());
  for (const char* const node : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"}) {
    if (::access(node, R_OK | W_OK) != 0 && errno == EACCES) driver.closed_nodes.emplace_back(node);
  }
  return driver;
}

bool has_nvidia_hardware(const std::string& root) {
  constexpr long kNvidia = 0x10de;
  constexpr long kDisplay = 0x03;
  const std::string devices = root + "/sys/bus/pci/devices/";
  for (const std::string& address : list_names(devices)) {
    if (read_number(devices + address + "/vendor", 0) != kNvidia) continue;
    if (read_number(devices + address + "/class", 0) >> 16 == kDisplay) return true;
  }
  return false;
}

}  // namespace lrun::launcher
