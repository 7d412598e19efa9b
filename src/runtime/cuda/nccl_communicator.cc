// In: NCCL's non-blocking calls. Out: their end, or a failure at the deadline. Called by the nccl group on the training
// thread and on its watchdog's.
#include "runtime/cuda/nccl_communicator.h"

#include <lrun/error.h>

#include <chrono>
#include <exception>
#include <string_view>

#include "runtime/collectives/bootstrap/backoff.h"
#include "runtime/cuda/cuda_calls.h"

namespace lrun::detail {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string to_hex(const ncclUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) {
    const auto value = static_cast<unsigned char>(byte);
    text += kHexDigits[value >> 4];
    text += kHexDigits[value & 15];
  }
  return text;
}

ncclUniqueId from_hex(const std::string& text) {
  ncclUniqueId id;
  if (text.size() != 2 * sizeof id.internal) throw Error("rank 0 of the group made no NCCL identifier");
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    const std::size_t high = kHexDigits.find(text[2 * i]);
    const std::size_t low = kHexDigits.find(text[2 * i + 1]);
    id.internal[i] = static_cast<char>(static_cast<unsigned char>(high << 4 | low));
  }
  return id;
}

/// Of the current device.
std::string bus_id() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  char text[32] = {};  // '0000:18:00.0'
  check_cuda(cudaDeviceGetPCIBusId(text, sizeof text, device), "cudaDeviceGetPCIBusId");
  return text;
}

std::string make_identifier(int rank) {
  if (rank != 0) return {};
  ncclUniqueId id;
  check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return to_hex(id);
}

}  // namespace

NcclCommunicator::NcclCommunicator(const CudaGroup& group) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + group.options.timeout;
  const ncclUniqueId id = from_hex(group.share(make_identifier(group.options.rank), bus_id()));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t result =
      ncclCommInitRankConfig(&communicator_, group.options.world_size, id, group.options.rank, &config);
  try {
    settle("ncclCommInitRankConfig", result, deadline, [&group] {
      if (const auto peer = group.ended_peer()) throw PeerLost(*peer + " ended while the group was made");
    });
  } catch (...) {
    abort();
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() { abort(); }

/// A non-blocking call has only begun when it returns: waits for its end. With mutex_ held, or in the constructor.
void NcclCommunicator::settle(const std::string& call, ncclResult_t result, SteadyTime deadline,
                              const std::function<void()>& look) {
  check_nccl(result, call);
  is_in_progress_ = result == ncclInProgress;
  for (Backoff backoff(deadline, std::chrono::milliseconds(5)); result == ncclInProgress; backoff.sleep()) {
    check_nccl(ncclCommGetAsyncError(communicator_, &result), "ncclCommGetAsyncError");
    check_nccl(result, call);
    is_in_progress_ = result == ncclInProgress;
    if (!is_in_progress_) return;
    if (aborting_) throw PeerLost("backend 'nccl': the group has been aborted");
    look();
    if (backoff.is_over()) throw CollectiveTimeout("backend 'nccl': the ranks did not connect before the deadline");
  }
}

void NcclCommunicator::enqueue(const std::string& call, const std::function<ncclResult_t(ncclComm_t)>& operation,
                               SteadyTime deadline) {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) throw PeerLost("backend 'nccl': the group has been aborted");
  settle(call, operation(communicator_), deadline, [] {});
}

std::string NcclCommunicator::asynchronous_error() {
  const std::unique_lock lock(mutex_, std::try_to_lock);  // the enqueuing thread checks the error itself
  if (!lock || communicator_ == nullptr) return {};
  ncclResult_t state = ncclSuccess;
  if (ncclCommGetAsyncError(communicator_, &state) != ncclSuccess) return {};
  if (state == ncclSuccess || state == ncclInProgress) return {};
  return ncclGetErrorString(state);
}

void NcclCommunicator::close(SteadyTime deadline) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) return;
    if (!is_in_progress_) {
      settle("ncclCommFinalize", ncclCommFinalize(communicator_), deadline, [] {});
      ncclCommDestroy(communicator_);
      communicator_ = nullptr;
      return;
    }
  } catch (const std::exception&) {
    // Aborting is what is left.
  }
  abort();
}

void NcclCommunicator::abort() noexcept {
  aborting_ = true;
  const std::lock_guard lock(mutex_);
  if (communicator_ != nullptr) ncclCommAbort(communicator_);
  communicator_ = nullptr;
}

}  // namespace lrun::detail
