#include "plan/busy_gpus.h"

namespace lrun::launcher {

std::string why_busy(const Gpu& gpu) {
  if (gpu.processes.empty()) return {};
  const GpuProcess& first = gpu.processes.front();
  std::string text = "process " + std::to_string(first.pid);
  if (!first.name.empty()) text += " (" + first.name + ")";
  if (is_taken(gpu)) {
    text += " uses it exclusively";
  } else {
    text += first.memory_mib < 0 ? " computes on it" : " uses " + std::to_string(first.memory_mib) + " MiB of it";
  }
  const std::size_t others = gpu.processes.size() - 1;
  return others == 0 ? text : text + ", and " + std::to_string(others) + (others == 1 ? " other" : " others");
}

bool is_taken(const Gpu& gpu) { return gpu.mode == ComputeMode::kExclusive && !gpu.processes.empty(); }

std::string busy_hint(const AllocatedNode& node, std::size_t wanted, bool taken) {
  std::string free;
  std::size_t count = 0;
  for (std::size_t i = 0; i < node.gpus.gpus.size() && count < wanted; ++i) {
    const Gpu& gpu = node.gpus.gpus[i];
    if (gpu.lost || gpu.mode == ComputeMode::kProhibited || !gpu.processes.empty()) continue;
    free += (free.empty() ? "" : ",") + std::to_string(i);
    ++count;
  }
  if (count == 1) free += ',';  // '2,' is GPU 2, and '2' are two of them
  const std::string instead = taken ? "" : ", or '--share-gpus' to use busy ones too";
  if (count == wanted) return "use '--devices " + free + "'" + instead;
  if (count > 0) return "free: '--devices " + free + "'" + instead;
  return taken ? "no GPU is free" : "no GPU is free; '--share-gpus' uses busy ones too";
}

}  // namespace lrun::launcher
