#pragma once

#include <nccl.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "runtime/collectives/cuda_library.h"

namespace lrun::detail {

/// This rank's end of a non-blocking NCCL communicator: every call of it that waits has a deadline.
///
/// Threads  any, one at a time inside; abort() ends what others wait for.
class NcclCommunicator {
 public:
  /// Meets the other ranks and connects with them on the current device.
  /// \throws Unsupported  ranks share a GPU.
  /// \throws CollectiveTimeout  not all ranks connected within the timeout. \throws PeerLost  one ended meanwhile.
  explicit NcclCommunicator(const CudaGroup& group);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator();

  /// Puts an operation on its stream; the kernels run later. \param call  as errors name it.
  /// \throws Error, CollectiveTimeout
  void enqueue(const std::string& call, const std::function<ncclResult_t(ncclComm_t)>& operation, SteadyTime deadline);
  /// An error that NCCL itself has noticed, such as a lost connection; empty if there is none.
  [[nodiscard]] std::string asynchronous_error();
  /// Frees the communicator once its kernels have ended on this rank and no other one needs it for them. Aborts it at
  /// the deadline.
  void close(SteadyTime deadline) noexcept;
  /// Ends the kernels in flight and frees the communicator.
  void abort() noexcept;

 private:
  void settle(const std::string& call, ncclResult_t result, SteadyTime deadline, const std::function<void()>& look);

  std::atomic<bool> aborting_{false};  // ends the waits of the thread that holds the mutex
  std::mutex mutex_;
  ncclComm_t communicator_ = nullptr;  // null once aborted
  bool is_in_progress_ = false;        // also when nobody waits for the call any more: then it can only be aborted
};

}  // namespace lrun::detail
