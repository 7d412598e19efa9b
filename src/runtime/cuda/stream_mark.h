#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

#include "runtime/cuda/cuda_calls.h"

namespace lrun::detail {

/// A mark in a stream, once it is recorded. Shared by those who wait for it and the watchdog.
class Mark {
 public:
  Mark() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { static_cast<void>(cudaEventDestroy(event_)); }

  void record(cudaStream_t stream) {
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
    recorded_ = true;
  }
  void hold_back(cudaStream_t stream) const {
    check_cuda(failure_, "cudaEventQuery");
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  // CUDA takes an event that is in no stream yet for one that has been reached. Nothing more comes after a failure,
  // which hold_back() throws.
  [[nodiscard]] bool is_reached() const {
    if (!recorded_) return false;
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaSuccess) return true;
    if (result != cudaErrorNotReady) {
      failure_ = result;
      return true;
    }
    static_cast<void>(cudaGetLastError());  // else it is what the thread's next check of a kernel finds
    return false;
  }
  /// It is in a stream, which has not come to it.
  [[nodiscard]] bool is_pending() const { return recorded_ && !is_reached(); }

 private:
  cudaEvent_t event_ = nullptr;
  std::atomic<bool> recorded_{false};
  mutable std::atomic<cudaError_t> failure_{cudaSuccess};  // of a query
};

}  // namespace lrun::detail
