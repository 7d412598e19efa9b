#include "inspect/judge_gpus.h"

#include <fmt/format.h>

#include <string>

#include "plan/busy_gpus.h"

namespace lrun::launcher {
namespace {

using Severity = Finding::Severity;
using Findings = std::vector<Finding>;

void judge_driver(const MachineFacts& facts, Findings& findings) {
  const GpuInventory& gpus = facts.machine_gpus;
  const DriverFacts& driver = facts.driver;
  if (gpus.answer == GpuAnswer::kNoLibrary && facts.nvidia_hardware) {
    findings.push_back({"driver", Severity::kProblem, "there is an NVIDIA GPU and no driver library",
                        "install the driver; in a container: docker run --gpus all"});
  } else if (gpus.answer == GpuAnswer::kDriverNotLoaded && facts.nvidia_hardware) {
    findings.push_back({"driver", Severity::kProblem, "there is an NVIDIA GPU and its driver is not loaded",
                        "modprobe nvidia as root; 'dmesg | grep -i nvidia' says why it is not"});
  } else if (gpus.answer == GpuAnswer::kFailed) {
    findings.push_back(
        {"driver", Severity::kProblem, gpus.detail, "see 'nvidia-smi' and 'dmesg'; reboot if both fail"});
  }
  if (!driver.kernel.empty() && !driver.library.empty() && driver.kernel != driver.library) {
    findings.push_back(
        {"driver-version", Severity::kProblem,
         fmt::format("the NVIDIA kernel module is {} and the library is {}", driver.kernel, driver.library),
         "reboot, or reload the module: the driver was updated while it was in use"});
  }
  for (const std::string& node : driver.closed_nodes) {
    findings.push_back({"permission", Severity::kProblem, "'" + node + "' may not be opened: programs find no GPU",
                        "join the group that owns it, see 'ls -l " + node + "'"});
  }
}

void judge_each(const MachineFacts& facts, Findings& findings) {
  for (const Gpu& gpu : facts.machine_gpus.gpus) {
    const std::string name = fmt::format("GPU {}", gpu.index);
    if (gpu.lost) {
      findings.push_back({"gpu-lost", Severity::kProblem, name + " is lost: it fell off the bus",
                          "reboot; when it comes back, 'dmesg | grep Xid' says what happened"});
    } else if (gpu.mode == ComputeMode::kProhibited) {
      findings.push_back({"gpu-mode", Severity::kWarning, name + " may not be used: its compute mode is 'prohibited'",
                          fmt::format("nvidia-smi -i {} -c DEFAULT as root", gpu.index)});
    } else if (!gpu.processes.empty()) {
      findings.push_back({"gpu-busy", Severity::kWarning, name + " is busy: " + why_busy(gpu),
                          "use others, or end the process if it is a left-over"});
    }
  }
  for (const int index : facts.driver.waiting_for_reset) {
    findings.push_back({"gpu-memory", Severity::kWarning,
                        fmt::format("GPU {} has broken memory that it replaces at its next reset", index),
                        fmt::format("nvidia-smi -i {} --gpu-reset as root, with nothing running on it", index)});
  }
}

void judge_visibility(const MachineFacts& facts, Findings& findings) {
  const auto there = static_cast<int>(facts.machine_gpus.gpus.size());
  if (facts.machine_gpus.answer == GpuAnswer::kCounted && facts.driver.listed > 0 && there < facts.driver.listed) {
    findings.push_back({"gpu-missing", Severity::kProblem,
                        fmt::format("the kernel lists {} GPUs and only {} answer{}", facts.driver.listed, there,
                                    facts.machine_gpus.detail.empty() ? "" : ": " + facts.machine_gpus.detail),
                        "'nvidia-smi' and 'dmesg | grep Xid' say which is missing"});
  }
  if (there > 0 && facts.visible_gpus.gpus.empty()) {
    findings.push_back({"gpu-hidden", Severity::kWarning,
                        "programs started here see no GPU: " + facts.visible_gpus.detail,
                        "unset the variable, or name GPUs that are there"});
  }
}

/// GPUs without any peer-to-peer are of a kind that has none; a few pairs without it are a fault.
void judge_peers(const MachineFacts& facts, Findings& findings) {
  const DriverFacts& driver = facts.driver;
  if (driver.blocked.empty()) return;
  const bool all = static_cast<int>(driver.blocked.size()) == driver.pairs;
  const BlockedPair& first = driver.blocked.front();
  const std::string text =
      all ? fmt::format("the GPUs cannot read each other's memory ({}): collectives go through the host", first.reason)
          : fmt::format("GPUs {} and {} cannot read each other's memory ({}), others can", first.first, first.second,
                        first.reason);
  findings.push_back({"p2p", all ? Severity::kNote : Severity::kWarning, text,
                      "'nvidia-smi topo -p2p r' shows all pairs; ACS and IOMMU in the BIOS switch it off"});
}

}  // namespace

void judge_gpus(const MachineFacts& facts, Findings& findings) {
  judge_driver(facts, findings);
  judge_visibility(facts, findings);
  judge_each(facts, findings);
  judge_peers(facts, findings);
}

}  // namespace lrun::launcher
