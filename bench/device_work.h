#pragma once

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <functional>
#include <set>
#include <string>

#include "turns.h"

namespace lrun::bench {

/// Returns when the device has done all that the current stream was given. Nothing to wait for on a CPU.
inline void finish(at::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

/// \return what the device did during `work`, as LibTorch's profiler saw it: kernels (those of NCCL apart), copies with
///         their bytes, and memory that was set; each divided by `steps`. All are 0 on a CPU.
inline Figures profile(at::Device device, int steps, const std::function<void()>& work) {
  namespace profiler = torch::autograd::profiler;
  using torch::profiler::impl::ActivityType;
  constexpr int kAnnotation = 2;  // a range of the program's, repeated on the device
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  std::set<ActivityType> activities = {ActivityType::CPU};
  if (device.is_cuda()) activities.insert(ActivityType::CUDA);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  work();
  finish(device);
  const auto result = profiler::disableProfiler();
  Figures figures = {{"kernels", 0}, {"nccl_kernels", 0}, {"copies", 0}, {"copied_bytes", 0}, {"sets", 0}};
  for (const auto& event : result->events()) {
    if (event.deviceType() == at::kCPU || event.activityType() == kAnnotation) continue;
    const std::string name = event.name();
    if (name.starts_with("Memcpy")) {
      ++figures["copies"];
      figures["copied_bytes"] += static_cast<double>(event.nBytes());
    } else if (name.starts_with("Memset")) {
      ++figures["sets"];
    } else {
      ++figures[name.find("nccl") == std::string::npos && name.find("oneRank") == std::string::npos ? "kernels"
                                                                                                    : "nccl_kernels"];
    }
  }
  for (auto& [name, value] : figures) value /= steps;
  return figures;
}

}  // namespace lrun::bench
