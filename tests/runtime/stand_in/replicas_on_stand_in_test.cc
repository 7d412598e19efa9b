// The replicas of one process over NCCL on the stand-in: their sums in streams with random delays, a connection that is
// lost, and an error of every call.

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collectives/cuda_library.h"
#include "runtime/dp/replica_group.h"
#include "runtime/stand_in/communicators.h"
#include "runtime/stand_in/expectations.h"
#include "runtime/stand_in/machine.h"
#include "runtime/stand_in/operators.h"
#include "runtime/stand_in/rank_threads.h"
#include "runtime/stand_in/script.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::test::stand_in {
namespace {

using namespace std::chrono_literals;
using detail::ReplicaGroup;
using detail::ReplicaRow;
using detail::testing::require_equal;
using ::testing::StartsWith;

std::vector<at::Device> devices_of(int replicas) {
  std::vector<at::Device> devices;
  for (int index = 0; index < replicas; ++index) devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(index));
  return devices;
}

ReplicaGroup make_group(int replicas, std::chrono::milliseconds timeout) {
  provide_operators();
  const auto make =
      reinterpret_cast<detail::ReplicaLinkEntryPoint>(::dlsym(RTLD_DEFAULT, detail::kReplicaLinkEntryPoint));
  const std::vector<at::Device> devices = devices_of(replicas);
  return {devices, std::unique_ptr<detail::ReplicaLink>(make(&devices)), timeout};
}

/// One tensor per replica, of its number and more.
ReplicaRow row_of(int replicas, std::int64_t count, int more) {
  ReplicaRow row;
  for (const at::Device& device : devices_of(replicas)) {
    row.push_back(at::full({count}, device.index() + more, at::TensorOptions().dtype(at::kFloat).device(device)));
  }
  return row;
}

void expect_equal(const at::Tensor& tensor, double value) {
  require_equal(tensor.cpu(), at::full({tensor.numel()}, value, at::kFloat), "a tensor of " + tensor.device().str());
}

void train(int replicas, int rounds, std::chrono::milliseconds timeout = 20s) {
  ReplicaGroup group = make_group(replicas, timeout);
  for (int round = 0; round < rounds; ++round) {
    const std::vector<ReplicaRow> rows = {row_of(replicas, 5, round), row_of(replicas, 1000, round + 1)};
    group.broadcast(rows);
    group.sum({row_of(replicas, 17, round)});  // nobody keeps it
    const ReplicaRow next = row_of(replicas, 17, 50);
    const ReplicaRow gradients = row_of(replicas, 9, round);
    group.sum({gradients});
    for (const at::Tensor& tensor : rows[0]) expect_equal(tensor, round);
    for (const at::Tensor& tensor : rows[1]) expect_equal(tensor, round + 1);
    const int of_numbers = replicas * (replicas - 1) / 2;
    expect_equal(gradients[0], replicas * round + of_numbers);
    for (int index = 0; index < replicas; ++index) expect_equal(next[static_cast<std::size_t>(index)], 50 + index);
  }
}

TEST(ReplicasOnStandIn, ExchangeWhateverIsLate) {
  for (const std::uint64_t seed : seeds()) {
    for (int replicas = 2; replicas <= 3; ++replicas) {
      SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed) + ", replicas: " + std::to_string(replicas));
      begin_run(seed, 2ms);
      EXPECT_EQ(text_of_error([&] { train(replicas, 2); }), "");
      expect_order();
    }
  }
}

TEST(ReplicasOnStandIn, AreDestroyedWhileTheyAreBusy) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed));
    begin_run(seed, 2ms);
    EXPECT_EQ(text_of_error([] { make_group(3, 20s).sum({row_of(3, 1000, 1)}); }), "");
    expect_order();
  }
}

TEST(ReplicasOnStandIn, KeepMemoryOfAnExchangeThatFailed) {
  begin_run(1, 2ms);
  {
    ReplicaGroup group = make_group(2, 20s);
    inject({{"cudaEventRecord", "liblrun_cuda.so", 0}, 2, cudaErrorIllegalAddress});  // behind the exchange
    EXPECT_EQ(text_of_error([&] { group.sum({row_of(2, 33, 1)}); }),
              "Error: backend 'nccl': cudaEventRecord: an illegal memory access was encountered");
    const ReplicaRow next = row_of(2, 33, 50);
    expect_equal(next[0], 50);
  }
  expect_order();
}

TEST(ReplicasOnStandIn, EndAnExchangeAtItsDeadline) {
  begin_run(1, 1ms);
  Obstacle obstacle(default_stream(1));
  {
    ReplicaGroup group = make_group(2, 300ms);
    group.sum({row_of(2, 10, 1)});
    std::this_thread::sleep_for(600ms);
    EXPECT_THAT(
        text_of_error([&] { group.sum({row_of(2, 10, 1)}); }),
        StartsWith("CollectiveTimeout: NCCL between cuda:0 and cuda:1: summing the replicas' gradients did not end "
                   "within 300 ms"));
  }
  obstacle.remove();
  expect_order();
}

TEST(ReplicasOnStandIn, TellOfAConnectionThatNcclLost) {
  begin_run(1, 1ms);
  Obstacle obstacle(default_stream(1));
  {
    ReplicaGroup group = make_group(2, 20s);
    group.sum({row_of(2, 10, 1)});
    lose_connections(1);
    while (live().communicators > 0) std::this_thread::sleep_for(1ms);  // the watchdog aborts them
    obstacle.remove();
    EXPECT_EQ(text_of_error([&] { group.sum({row_of(2, 10, 1)}); }),
              "Error: NCCL between cuda:0 and cuda:1: summing the replicas' gradients: remote process exited or there "
              "was a network error on cuda:1");
  }
  expect_order();
}

TEST(ReplicasOnStandIn, NameTheCallThatFailed) {
  begin_run(7, 0ms);
  ASSERT_EQ(text_of_error([] { train(2, 1, 2s); }), "");
  expect_order();
  const std::vector<Fault> faults = faults_of_all_calls();
  EXPECT_GT(faults.size(), 40U);
  for (const Fault& fault : faults) {
    SCOPED_TRACE(name_of(fault));
    begin_run(7, 0ms);
    inject(fault);
    expect_name_of(fault, text_of_error([] { train(2, 1, 2s); }));
  }
}

}  // namespace
}  // namespace lrun::test::stand_in
