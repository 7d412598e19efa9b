// In: a time limit. Out: what processes use of NVIDIA's GPUs, and whose ranks' they are. Called by `lrun status`. NVML
// is asked in a forked child, because a driver may hang or crash.
#include "inspect/gpu_use.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "base/child_query.h"
#include "cluster/nvml_library.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;
using Sample = NvmlLibrary::ProcessSample;

constexpr unsigned kMostProcesses = 256;
constexpr std::chrono::seconds kSampled(2);  // an older sample says nothing about now
constexpr int kUnknown = -1;
constexpr int kMostParents = 64;

/// The latest share of the GPU's time for each process that had any.
std::map<unsigned, int> percents_on(const NvmlLibrary& nvml, NvmlLibrary::Device device) {
  std::map<unsigned, int> percents;
  std::vector<Sample> samples(kMostProcesses);
  unsigned count = kMostProcesses;
  const auto since = std::chrono::system_clock::now().time_since_epoch() - kSampled;
  const auto since_us =
      static_cast<unsigned long long>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
  if (nvml.process_samples == nullptr ||
      nvml.process_samples(device, samples.data(), &count, since_us) != NvmlLibrary::kSuccess) {
    return percents;
  }
  samples.resize(std::min(count, kMostProcesses));
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.time_us < b.time_us; });
  for (const Sample& sample : samples) {
    constexpr unsigned kAll = 100;  // drivers leave samples unset
    if (sample.time_us >= since_us && sample.compute_percent <= kAll) {
      percents[sample.pid] = static_cast<int>(sample.compute_percent);
    }
  }
  return percents;
}

/// The GPU's own share of time, which is that of a process that is alone there.
int percent_of(const NvmlLibrary& nvml, NvmlLibrary::Device device) {
  NvmlLibrary::Rates rates = {};
  const bool known = nvml.rates != nullptr && nvml.rates(device, &rates) == NvmlLibrary::kSuccess;
  return known ? static_cast<int>(rates.compute_percent) : kUnknown;
}

void add_processes(const NvmlLibrary& nvml, unsigned index, Json& processes) {
  NvmlLibrary::Device device = nullptr;
  if (nvml.handle(index, &device) != NvmlLibrary::kSuccess) return;
  const std::vector<NvmlLibrary::ProcessInfo> infos = nvml.processes_on(device, kMostProcesses);
  if (infos.empty()) return;
  const std::map<unsigned, int> percents = percents_on(nvml, device);
  for (const NvmlLibrary::ProcessInfo& info : infos) {
    const auto percent = percents.find(info.pid);
    processes.push_back({info.pid, index, info.memory_mib(),
                         percent != percents.end() ? percent->second
                         : infos.size() == 1       ? percent_of(nvml, device)
                                                   : kUnknown});
  }
}

/// Runs in the child.
std::string processes_text() {
  Json processes = Json::array();
  const std::optional<NvmlLibrary> nvml = NvmlLibrary::open();
  if (!nvml || nvml->compute_processes == nullptr || nvml->init() != NvmlLibrary::kSuccess) return processes.dump();
  unsigned count = 0;
  if (nvml->count(&count) != NvmlLibrary::kSuccess) count = 0;
  for (unsigned index = 0; index < count; ++index) add_processes(*nvml, index, processes);
  nvml->shutdown();
  return processes.dump();
}

int sum_of(int first, int second) { return first == kUnknown || second == kUnknown ? kUnknown : first + second; }

/// The running worker that is the process or above it.
WorkerStatus* worker_of(pid_t pid, RunStatus& status, const std::function<pid_t(pid_t)>& parent_of) {
  for (int step = 0; pid > 1 && step < kMostParents; ++step, pid = parent_of(pid)) {
    for (WorkerStatus& worker : status.workers) {
      if (worker.running && worker.pid == pid) return &worker;
    }
  }
  return nullptr;
}

void add_use(std::vector<GpuUse>& gpus, const GpuUse& use) {
  const auto same = std::find_if(gpus.begin(), gpus.end(), [&](const GpuUse& other) { return other.gpu == use.gpu; });
  if (same == gpus.end()) {
    gpus.push_back(use);
  } else {
    same->memory_mib = sum_of(same->memory_mib, use.memory_mib);
    same->percent = sum_of(same->percent, use.percent);
  }
}

}  // namespace

std::vector<ProcessOnGpu> read_gpu_use(Duration limit) {
  std::vector<ProcessOnGpu> processes;
  if (!NvmlLibrary::is_likely()) return processes;
  const ChildAnswer answer = query_in_child(processes_text, limit);
  if (answer.end != ChildAnswer::End::kAnswered) return processes;
  for (const Json& process : Json::parse(answer.text)) {
    processes.push_back(
        {process.at(0).get<pid_t>(), {process.at(1).get<int>(), process.at(2).get<int>(), process.at(3).get<int>()}});
  }
  return processes;
}

void add_gpu_use(RunStatus& status, const std::vector<ProcessOnGpu>& processes,
                 const std::function<pid_t(pid_t)>& parent_of) {
  for (const ProcessOnGpu& process : processes) {
    if (WorkerStatus* const worker = worker_of(process.pid, status, parent_of)) add_use(worker->gpus, process.use);
  }
}

}  // namespace lrun::launcher
