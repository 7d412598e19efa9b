// In: rows of tensors, one tensor per GPU of this process. Out: NCCL's broadcasts and sums of them, each GPU on a
// stream of its own. Implements ReplicaLink; made by liblrun_cuda.so's entry point.
#include "runtime/cuda/nccl_replicas.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <lrun/error.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <string>
#include <utility>

#include "runtime/collectives/bootstrap/backoff.h"
#include "runtime/cuda/cuda_calls.h"
#include "runtime/cuda/nccl_types.h"
#include "runtime/cuda/stream_mark.h"

namespace lrun::detail {
namespace {

class NcclReplicas final : public ReplicaLink {
 public:
  explicit NcclReplicas(const std::vector<at::Device>& devices) {
    for (const at::Device& device : devices) {
      const c10::cuda::CUDAGuard guard(device);  // events belong to the current one
      replicas_.emplace_back(device.index());
    }
    try {
      connect();
    } catch (...) {
      abort();
      throw;
    }
  }
  NcclReplicas(const NcclReplicas&) = delete;
  NcclReplicas& operator=(const NcclReplicas&) = delete;
  ~NcclReplicas() override { abort(); }

  bool is_settled() override {
    bool settled = true;
    for (const Replica& replica : replicas_) {
      ncclResult_t state = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(replica.communicator, &state), replica.named("ncclCommGetAsyncError"));
      check_nccl(state, replica.named("a call"));
      settled = settled && state == ncclSuccess;
    }
    return settled;
  }

  void begin_group() override { check_nccl(ncclGroupStart(), "ncclGroupStart"); }
  void end_group() override { check_nccl(ncclGroupEnd(), "ncclGroupEnd"); }

  void broadcast(std::size_t index, const at::Tensor& tensor) override {
    const Replica& replica = replicas_[index];
    void* memory = tensor.mutable_data_ptr();
    check_nccl(ncclBroadcast(memory, memory, tensor.nbytes(), ncclUint8, 0, replica.communicator, replica.stream),
               replica.named("ncclBroadcast"));
    keep(tensor, replica);
  }

  void sum(std::size_t index, const at::Tensor& tensor) override {
    const Replica& replica = replicas_[index];
    void* memory = tensor.mutable_data_ptr();
    check_nccl(ncclReduce(memory, memory, static_cast<std::size_t>(tensor.numel()), type_of(tensor), ncclSum, 0,
                          replica.communicator, replica.stream),
               replica.named("ncclReduce"));
    keep(tensor, replica);
  }

  void wait_for_callers() override {
    for (Replica& replica : replicas_) {
      const c10::cuda::CUDAGuard guard(replica.device);  // a default stream is that of the current device
      replica.ready.record(c10::cuda::getCurrentCUDAStream(replica.device));
      replica.ready.hold_back(replica.stream);
    }
  }

  void hold_callers() override {
    for (Replica& replica : replicas_) {
      const c10::cuda::CUDAGuard guard(replica.device);
      replica.ended.record(replica.stream);
      replica.ended.hold_back(c10::cuda::getCurrentCUDAStream(replica.device));
    }
  }

  bool is_reached() override {
    return std::ranges::all_of(replicas_, [](const Replica& replica) { return replica.ended.is_reached(); });
  }

  std::string asynchronous_error() override {
    for (const Replica& replica : replicas_) {
      ncclResult_t state = ncclSuccess;
      if (ncclCommGetAsyncError(replica.communicator, &state) != ncclSuccess) continue;
      if (state != ncclSuccess && state != ncclInProgress) return replica.named(ncclGetErrorString(state));
    }
    return {};
  }

  void close(SteadyTime deadline) noexcept override {
    try {
      finalize();
      for (Backoff backoff(deadline, std::chrono::milliseconds(5)); !is_settled(); backoff.sleep()) {
        if (backoff.is_over()) return abort();
      }
      for (Replica& replica : replicas_) {  // does not wait for the others any more
        static_cast<void>(ncclCommDestroy(std::exchange(replica.communicator, nullptr)));
      }
    } catch (const std::exception&) {
      abort();
    }
  }

  /// In one group: communicators of one process are freed together.
  void abort() noexcept override {
    if (std::ranges::all_of(replicas_, [](const Replica& replica) { return replica.communicator == nullptr; })) return;
    const bool is_group = ncclGroupStart() == ncclSuccess;
    for (Replica& replica : replicas_) {
      if (replica.communicator != nullptr) static_cast<void>(ncclCommAbort(replica.communicator));
      replica.communicator = nullptr;
    }
    if (is_group) static_cast<void>(ncclGroupEnd());
  }

 private:
  struct Replica {
    explicit Replica(c10::DeviceIndex index) : device(index), stream(c10::cuda::getStreamFromPool(true, index)) {}

    [[nodiscard]] std::string named(const std::string& call) const {
      return call + " on cuda:" + std::to_string(device);
    }

    c10::DeviceIndex device;
    c10::cuda::CUDAStream stream;
    Mark ready;  // of the caller's stream
    Mark ended;  // of this one's
    ncclComm_t communicator = nullptr;
  };

  void connect() {
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const auto count = static_cast<int>(replicas_.size());
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    ncclResult_t result = ncclSuccess;
    for (int rank = 0; rank < count && (result == ncclSuccess || result == ncclInProgress); ++rank) {
      Replica& replica = replicas_[static_cast<std::size_t>(rank)];
      const c10::cuda::CUDAGuard guard(replica.device);
      result = ncclCommInitRankConfig(&replica.communicator, count, id, rank, &config);
    }
    const ncclResult_t end = ncclGroupEnd();
    check_nccl(result, "ncclCommInitRankConfig");
    check_nccl(end, "ncclGroupEnd");
  }

  /// Begins to. In one group: each waits for all others.
  void finalize() {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    ncclResult_t result = ncclSuccess;
    for (const Replica& replica : replicas_) {
      if (result == ncclSuccess || result == ncclInProgress) result = ncclCommFinalize(replica.communicator);
    }
    const ncclResult_t end = ncclGroupEnd();
    check_nccl(result, "ncclCommFinalize");
    check_nccl(end, "ncclGroupEnd");
  }

  /// Its memory is not reused before the replica's stream is done with it.
  static void keep(const at::Tensor& tensor, const Replica& replica) {
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), replica.stream);
  }

  std::deque<Replica> replicas_;  // a Mark stays where it is
};

}  // namespace

std::unique_ptr<ReplicaLink> make_nccl_replicas(const std::vector<at::Device>& devices) {
  require_cuda();
  return std::make_unique<NcclReplicas>(devices);
}

}  // namespace lrun::detail
