#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

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
  /// Now it is in no stream, as a new one.
  void clear() {
    recorded_ = false;
    failure_ = cudaSuccess;
  }
  /// It is in a stream, which has not come to it.
  [[nodiscard]] bool is_pending() const { return recorded_ && !is_reached(); }

 private:
  cudaEvent_t event_ = nullptr;
  std::atomic<bool> recorded_{false};
  mutable std::atomic<cudaError_t> failure_{cudaSuccess};  // of a query
};

/// Marks of one device, which are used again and again. Threads  take(): the one that uses CUDA; marks may come back
/// from any. The driver lets a thread that makes or destroys an event wait for one that waits for the GPU: were a mark
/// destroyed by the watchdog, it could not end that wait.
class Marks : public std::enable_shared_from_this<Marks> {
 public:
  /// \return  a mark that is in no stream. It comes back when nobody has it any more.
  [[nodiscard]] std::shared_ptr<Mark> take() {
    std::unique_ptr<Mark> mark = take_used();
    if (!mark) mark = std::make_unique<Mark>();
    mark->clear();
    return {mark.release(),
            [marks = shared_from_this()](Mark* used) { marks->give_back(std::unique_ptr<Mark>(used)); }};
  }

 private:
  [[nodiscard]] std::unique_ptr<Mark> take_used() {
    const std::lock_guard lock(mutex_);
    if (used_.empty()) return nullptr;
    std::unique_ptr<Mark> mark = std::move(used_.back());
    used_.pop_back();
    return mark;
  }
  void give_back(std::unique_ptr<Mark> mark) {
    const std::lock_guard lock(mutex_);
    used_.push_back(std::move(mark));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Mark>> used_;
};

}  // namespace lrun::detail
