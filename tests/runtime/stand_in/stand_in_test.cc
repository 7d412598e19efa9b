// The rules of the stand-in for CUDA and NCCL: what it keeps in order, and that it reports what it is to report.

#include <ATen/ops/full.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/stand_in/machine.h"
#include "runtime/stand_in/operators.h"
#include "runtime/stand_in/script.h"

namespace lrun::test::stand_in {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two streams of device 0 with an event and three pieces of memory.
class StandIn : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 64;

  StandIn() {
    begin_run(1, 2ms);
    ::cudaSetDevice(0);
    for (cudaStream_t& stream : streams_) ::cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
    ::cudaEventCreateWithFlags(&event_, cudaEventDisableTiming);
    for (char*& memory : memory_) ::cudaMalloc(reinterpret_cast<void**>(&memory), kCount);
    const std::vector<char> first(kCount, 'a');
    ::cudaMemcpy(memory_[0], first.data(), kCount, cudaMemcpyDefault);
  }
  ~StandIn() override {
    for (char* memory : memory_) ::cudaFree(memory);
    if (event_ != nullptr) ::cudaEventDestroy(event_);
  }
  void copy(int from, int to, int stream) const {
    ::cudaMemcpyAsync(memory_[to], memory_[from], kCount, cudaMemcpyDefault, streams_[stream]);
  }
  [[nodiscard]] std::string read(int index) const {
    std::string text(kCount, '?');
    ::cudaMemcpy(text.data(), memory_[index], kCount, cudaMemcpyDefault);
    return text;
  }

  cudaStream_t streams_[2] = {};
  cudaEvent_t event_ = nullptr;
  char* memory_[3] = {};
};

TEST_F(StandIn, KeepsTheOrderThatEventsMake) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    begin_run(seed, 1ms);
    copy(0, 1, 0);
    ::cudaEventRecord(event_, streams_[0]);
    ::cudaStreamWaitEvent(streams_[1], event_, 0);
    copy(1, 2, 1);
    ::cudaStreamSynchronize(streams_[1]);
    EXPECT_EQ(read(2), std::string(kCount, 'a'));
    EXPECT_THAT(take_misuse(), IsEmpty());
  }
}

TEST_F(StandIn, KnowsWhatTheHostHasWaitedFor) {
  copy(0, 1, 0);
  ::cudaEventRecord(event_, streams_[0]);
  while (::cudaEventQuery(event_) == cudaErrorNotReady) std::this_thread::yield();
  copy(1, 2, 1);
  ::cudaStreamSynchronize(streams_[1]);
  EXPECT_THAT(take_misuse(), IsEmpty());
}

TEST_F(StandIn, ReportsMemoryThatIsUsedWithoutOrder) {
  copy(0, 1, 0);
  copy(1, 2, 1);
  ::cudaDeviceSynchronize();
  EXPECT_THAT(take_misuse(), ElementsAre(HasSubstr("nothing orders the two")));
}

TEST_F(StandIn, ReportsAnEventThatWasRecordedTooEarly) {
  ::cudaEventRecord(event_, streams_[0]);
  copy(0, 1, 0);
  ::cudaStreamWaitEvent(streams_[1], event_, 0);
  copy(1, 2, 1);
  ::cudaDeviceSynchronize();
  EXPECT_THAT(take_misuse(), ElementsAre(HasSubstr("nothing orders the two")));
}

TEST_F(StandIn, ReportsMemoryThatIsFreed) {
  void* memory = nullptr;
  ::cudaMalloc(&memory, kCount);
  ::cudaFree(memory);
  add_work(default_stream(0), {.name = "late", .accesses = {{memory, kCount, true}}});
  EXPECT_THAT(take_misuse(), ElementsAre("late uses memory that is no device's"));
}

TEST_F(StandIn, ReportsMemoryOfAnotherDevice) {
  add_work(default_stream(1), {.name = "lost", .accesses = {{memory_[0], kCount, false}}});
  EXPECT_THAT(take_misuse(), Contains("lost on device 1 uses memory of device 0"));
}

TEST_F(StandIn, ReportsAWaitForAnEventThatIsInNoStream) {
  EXPECT_EQ(::cudaStreamWaitEvent(streams_[0], event_, 0), cudaSuccess);
  EXPECT_THAT(take_misuse(), ElementsAre("a wait for an event that is in no stream"));
}

TEST_F(StandIn, ReportsAnEventThatWasDestroyed) {
  ::cudaEventDestroy(event_);
  EXPECT_EQ(::cudaEventRecord(event_, streams_[0]), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(::cudaEventQuery(event_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(take_misuse().size(), 2U);
  event_ = nullptr;
}

TEST_F(StandIn, ReportsAnEventOfAnotherDevice) {
  ::cudaSetDevice(1);
  EXPECT_EQ(::cudaEventRecord(event_, nullptr), cudaErrorInvalidResourceHandle);
  ::cudaSetDevice(0);
  EXPECT_THAT(take_misuse(), ElementsAre(HasSubstr("an event of device 0 is recorded in a stream of device 1")));
}

TEST_F(StandIn, HoldsAStreamAtAnObstacle) {
  Obstacle obstacle(reinterpret_cast<std::uintptr_t>(streams_[0]));
  ::cudaEventRecord(event_, streams_[0]);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(::cudaEventQuery(event_), cudaErrorNotReady);
  EXPECT_EQ(::cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(::cudaGetLastError(), cudaSuccess);
  obstacle.remove();
  EXPECT_EQ(::cudaEventSynchronize(event_), cudaSuccess);
}

TEST_F(StandIn, FailsInTheCallThatATestNames) {
  inject({{"cudaEventRecord", "test_runtime_stand_in", 0}, 2, cudaErrorLaunchFailure});
  EXPECT_EQ(::cudaEventRecord(event_, streams_[0]), cudaSuccess);
  EXPECT_EQ(::cudaEventRecord(event_, streams_[0]), cudaErrorLaunchFailure);
  EXPECT_EQ(::cudaEventRecord(event_, streams_[0]), cudaSuccess);
  EXPECT_TRUE(was_injected());
}

TEST_F(StandIn, FailsEverywhereOnABrokenDevice) {
  break_device(0, cudaErrorIllegalAddress);
  EXPECT_EQ(::cudaEventRecord(event_, streams_[0]), cudaErrorIllegalAddress);
  EXPECT_EQ(::cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  begin_run(1, 0ms);
  EXPECT_EQ(::cudaDeviceSynchronize(), cudaSuccess);
}

/// Fills a tensor in a stream that the allocator is told of, or not, and gives its memory to another one.
void reuse_memory(bool tells) {
  provide_operators();
  const auto other = c10::cuda::getStreamFromPool(true, 0);
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(at::kCUDA, 0);
  std::optional<at::Tensor> first = at::full({256}, 1, options);
  cudaEvent_t event = nullptr;
  ::cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  ::cudaEventRecord(event, nullptr);
  ::cudaStreamWaitEvent(other.stream(), event, 0);
  add_work(reinterpret_cast<std::uintptr_t>(other.stream()),
           {.name = "late", .accesses = {{first->data_ptr(), first->nbytes(), false}}});
  if (tells) c10::cuda::CUDACachingAllocator::recordStream(first->storage().data_ptr(), other);
  first.reset();
  const at::Tensor second = at::full({256}, 2, options);
  ::cudaDeviceSynchronize();
  ::cudaEventDestroy(event);
}

TEST_F(StandIn, ReportsMemoryThatIsReusedTooEarly) {
  reuse_memory(true);
  EXPECT_THAT(take_misuse(), IsEmpty());
  reuse_memory(false);
  EXPECT_THAT(take_misuse(), Contains(HasSubstr("nothing orders the two")));
}

/// The communicators of a clique of `size`, on a device each, of this thread.
std::vector<ncclComm_t> make_communicators(int size, const ncclUniqueId& id, int missing = 0) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::vector<ncclComm_t> communicators(static_cast<std::size_t>(size - missing));
  for (int rank = 0; rank < size - missing; ++rank) {
    ::cudaSetDevice(rank);
    EXPECT_EQ(ncclCommInitRankConfig(&communicators[static_cast<std::size_t>(rank)], size, id, rank, &config),
              ncclInProgress);
  }
  ::cudaSetDevice(0);
  return communicators;
}

ncclResult_t state_of(ncclComm_t communicator) {
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(communicator, &state), ncclSuccess);
  return state;
}

void settle(const std::vector<ncclComm_t>& communicators) {
  for (const ncclComm_t communicator : communicators) {
    while (state_of(communicator) == ncclInProgress) std::this_thread::yield();
  }
}

class NcclStandIn : public StandIn {
 protected:
  NcclStandIn() { EXPECT_EQ(ncclGetUniqueId(&id_), ncclSuccess); }

  ncclUniqueId id_;
};

TEST_F(NcclStandIn, IsInProgressUntilAllRanksCome) {
  const auto first = make_communicators(2, id_, 1);
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(state_of(first[0]), ncclInProgress);
  EXPECT_EQ(ncclAllReduce(memory_[0], memory_[1], 4, ncclFloat32, ncclSum, first[0], streams_[0]), ncclInvalidArgument);
  EXPECT_THAT(take_misuse(), ElementsAre("ncclAllReduce of a communicator that is in progress"));
  EXPECT_EQ(ncclCommAbort(first[0]), ncclSuccess);
  EXPECT_EQ(live(), (Live{1, 0, 0}));
}

TEST_F(NcclStandIn, LeavesStreamsWaitingForARankThatDoesNotCall) {
  const auto communicators = make_communicators(2, id_);
  settle(communicators);
  EXPECT_EQ(ncclAllReduce(memory_[0], memory_[1], 4, ncclFloat32, ncclSum, communicators[0], streams_[0]),
            ncclInProgress);
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(state_of(communicators[0]), ncclInProgress) << "they connect in the first operation";
  for (const ncclComm_t communicator : communicators) ncclCommAbort(communicator);
  EXPECT_EQ(::cudaStreamSynchronize(streams_[0]), cudaSuccess) << "an abort ends what waits";
  EXPECT_THAT(take_misuse(), IsEmpty());
}

TEST_F(NcclStandIn, ReportsACallAfterAnAbort) {
  const auto communicators = make_communicators(1, id_);
  settle(communicators);
  ncclCommAbort(communicators[0]);
  EXPECT_EQ(ncclCommFinalize(communicators[0]), ncclInvalidArgument);
  EXPECT_THAT(take_misuse(), ElementsAre("ncclCommFinalize of a communicator that does not exist"));
}

TEST_F(NcclStandIn, ReportsADestroyWithoutAFinalize) {
  const auto communicators = make_communicators(1, id_);
  settle(communicators);
  ncclCommDestroy(communicators[0]);
  EXPECT_THAT(take_misuse(), ElementsAre("a communicator is destroyed before it was finalized"));
}

TEST_F(NcclStandIn, ReportsTwoThreadsInOneCommunicator) {
  begin_run(1, 20ms);
  const auto communicators = make_communicators(1, id_);
  settle(communicators);
  const auto look = [&] {
    for (int i = 0; i < 200; ++i) state_of(communicators[0]);
  };
  std::thread other(look);
  look();
  other.join();
  EXPECT_THAT(take_misuse(), Contains("ncclCommGetAsyncError of a communicator in which another thread is"));
  ncclCommAbort(communicators[0]);
}

TEST_F(NcclStandIn, ReportsAStreamOfAnotherDevice) {
  const auto communicators = make_communicators(2, id_);
  settle(communicators);
  EXPECT_EQ(ncclAllReduce(memory_[0], memory_[1], 4, ncclFloat32, ncclSum, communicators[1], streams_[0]),
            ncclInvalidArgument);
  EXPECT_THAT(take_misuse(), ElementsAre("ncclAllReduce in a stream of another device"));
  for (const ncclComm_t communicator : communicators) ncclCommAbort(communicator);
}

TEST_F(NcclStandIn, ReportsTheEndOfAGroupThatWasNotBegun) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(take_misuse(), ElementsAre("the end of a group that was not begun"));
}

TEST_F(NcclStandIn, BeginsNothingInAGroupThatFails) {
  const auto communicators = make_communicators(1, id_);
  settle(communicators);
  inject({{"ncclAllReduce", "test_runtime_stand_in", 0}, 1, ncclSystemError});
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(live().open_groups, 1);
  EXPECT_EQ(ncclBroadcast(memory_[0], memory_[0], 4, ncclUint8, 0, communicators[0], streams_[0]), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(memory_[0], memory_[1], 4, ncclFloat32, ncclSum, communicators[0], streams_[0]),
            ncclSystemError);
  EXPECT_EQ(ncclGroupEnd(), ncclSystemError);
  EXPECT_EQ(live().open_groups, 0);
  EXPECT_EQ(state_of(communicators[0]), ncclSystemError);
  ncclCommAbort(communicators[0]);
}

}  // namespace
}  // namespace lrun::test::stand_in
