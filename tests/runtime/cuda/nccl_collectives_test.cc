// liblrun_cuda.so: that it loads everywhere, and where there are GPUs that its sums are right and its waits end. Two
// ranks have a GPU each, or share one as ranks of two hosts do: then NCCL takes the way over the network.

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/session.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/collectives/registry.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/on_gpu.h"
#include "runtime/support/exchange_on_gpu.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(NcclWithoutGpu, LoadsAndSaysWhatIsMissing) {
  if (gpus() > 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT(error_of([] { make_collectives("nccl", group_of(0, 2, "no-gpu")); }),
              AllOf(StartsWith("Unsupported: backend 'nccl' needs a GPU that CUDA can use, and there is none ("),
                    HasSubstr("on CPUs use 'auto'")));
}

TEST(NcclWithoutGpu, SessionsOnGpusSayWhatIsMissing) {
  if (gpus() > 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT(error_of([] { Session({.world = World(), .devices = {"cuda:0"}}); }),
              AllOf(StartsWith("Unsupported: device 'cuda:0' needs "), HasSubstr("lrun --accelerator cpu")));
}

/// Where two ranks are.
enum class Ranks { kWithAGpuEach, kOfTwoHostsOnOneGpu };

/// Runs `body` as processes on GPUs.
std::vector<std::string> run_on_gpus(int world_size, const std::string& name, const RankBody& body,
                                     std::chrono::milliseconds timeout = 60s, Ranks ranks = Ranks::kWithAGpuEach) {
  const bool each = ranks == Ranks::kWithAGpuEach;
  const GroupOptions options = group_of(0, world_size, name + (each ? "" : "-shared"), timeout);
  return run_ranks_apart(world_size, [&](int rank) {
    ::setenv("CUDA_VISIBLE_DEVICES", std::to_string(each ? rank : 0).c_str(), 1);
    if (!each) pretend_to_be_host(rank);
    GroupOptions own = options;
    own.rank = rank;
    body(*make_collectives("nccl", own));
  });
}

void sum_every_type(Collectives& group) {
  const int world = group.world_size();
  const int sum = world * (world + 1) / 2;
  for (const at::ScalarType dtype :
       {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kInt, at::kLong, at::kByte}) {
    const std::string name = c10::toString(dtype);
    at::Tensor tensor = at::full({10'007}, group.rank() + 1, on_gpu(dtype));
    group.all_reduce(tensor, ReduceOp::kSum)->wait();
    require_equal(tensor.cpu(), at::full({10'007}, sum, dtype), "the sum of " + name);
    at::Tensor largest = at::full({7}, group.rank() + 1, on_gpu(dtype));
    group.all_reduce(largest, ReduceOp::kMax)->wait();
    require_equal(largest.cpu(), at::full({7}, world, dtype), "the largest " + name);
    at::Tensor smallest = at::full({7}, group.rank() + 1, on_gpu(dtype));
    group.all_reduce(smallest, ReduceOp::kMin)->wait();
    require_equal(smallest.cpu(), at::ones({7}, dtype), "the smallest " + name);
    at::Tensor mine = at::full({3}, 0, on_gpu(dtype));
    group.reduce_scatter(mine, at::ones({world, 3}, on_gpu(dtype)), ReduceOp::kSum);
    require_equal(mine.cpu(), at::full({3}, world, dtype), "the own row of " + name);
  }
}

void move_every_type(Collectives& group) {
  const int world = group.world_size();
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat, at::kLong, at::kByte, at::kBool, at::kComplexFloat}) {
    const std::string name = c10::toString(dtype);
    at::Tensor told = at::full({5}, group.rank(), on_gpu(at::kLong)).to(dtype);
    group.broadcast(told, world - 1);
    require_equal(told.cpu(), at::full({5}, world - 1, at::kLong).to(dtype), "the broadcast of " + name);
    at::Tensor all = at::full({world, 2}, 1, on_gpu(dtype));
    group.all_gather(all, at::full({2}, group.rank(), on_gpu(at::kLong)).to(dtype));
    require_equal(all.select(1, 1).cpu(), at::arange(world, at::kLong).to(dtype), "all rows of " + name);
  }
}

void use_every_operation(Collectives& group) {
  const int world = group.world_size();
  sum_every_type(group);
  move_every_type(group);
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    at::Tensor average = at::full({3}, 2 * group.rank(), on_gpu(dtype));
    group.all_reduce(average, ReduceOp::kAverage)->wait();
    require_equal(average.cpu(), at::full({3}, world - 1, dtype),
                  "the average of " + std::string(c10::toString(dtype)));
  }
  at::Tensor of_cpu = at::ones({3}, at::kDouble);
  group.all_reduce(of_cpu, ReduceOp::kSum)->wait();
  require_equal(of_cpu, at::full({3}, world, at::kDouble), "a tensor of the CPU");
  use_every_exchange(group, on_gpu(at::kFloat).device());
  group.barrier();
}

TEST(NcclOnOneGpu, DoesEveryOperation) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_THAT(run_on_gpus(1, "one-gpu", use_every_operation), Each(std::string()));
}

void expect_every_operation(Ranks ranks) {
  EXPECT_THAT(run_on_gpus(2, "two-gpus", use_every_operation, 60s, ranks), Each(std::string()));
}

void expect_the_end_of_a_wait(Ranks ranks) {
  SharedCounter timed_out;
  const auto body = [&](Collectives& group) {
    group.barrier();
    if (group.rank() == 1) return timed_out.wait_for(1);
    const std::string error = error_of([&] { group.barrier(); });
    timed_out.add();
    require(error.starts_with("CollectiveTimeout: barrier #2 did not finish within 5000 ms: rank 1 did not call it"),
            error);
  };
  EXPECT_THAT(run_on_gpus(2, "silent-gpu", body, 5s, ranks), Each(std::string()));
}

void expect_the_names_of_calls_that_differ(Ranks ranks) {
  const auto body = [](Collectives& group) {
    group.barrier();
    at::Tensor tensor = at::ones({4}, on_gpu(at::kFloat));
    if (group.rank() == 0) return group.broadcast(tensor, 1), group.barrier();
    group.all_gather(at::empty({2, 4}, on_gpu(at::kFloat)), tensor), group.barrier();
  };
  EXPECT_THAT(run_on_gpus(2, "different-calls", body, 60s, ranks),
              Each(StartsWith("CollectiveMismatch: rank 0 called broadcast #2 of float32[4] from rank 1, but "
                              "rank 1 called all_gather #2 of float32[4]")));
}

void expect_the_name_of_a_rank_that_ends(Ranks ranks) {
  const auto body = [](Collectives& group) {
    group.barrier();
    if (group.rank() == 1) ::_exit(0);
    group.barrier();
  };
  EXPECT_THAT(run_on_gpus(2, "dead-gpu", body, 60s, ranks)[0], StartsWith("PeerLost: rank 1 ended during barrier #2"));
}

TEST(NcclOnTwoGpus, DoesEveryOperation) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  expect_every_operation(Ranks::kWithAGpuEach);
}

TEST(NcclOnTwoGpus, EndsTheWaitForARankThatIsSilent) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  expect_the_end_of_a_wait(Ranks::kWithAGpuEach);
}

TEST(NcclOnTwoGpus, NamesCallsThatDiffer) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  expect_the_names_of_calls_that_differ(Ranks::kWithAGpuEach);
}

TEST(NcclOnTwoGpus, NamesARankThatEnds) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  expect_the_name_of_a_rank_that_ends(Ranks::kWithAGpuEach);
}

TEST(NcclOfTwoHostsOnOneGpu, DoesEveryOperation) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  expect_every_operation(Ranks::kOfTwoHostsOnOneGpu);
}

TEST(NcclOfTwoHostsOnOneGpu, EndsTheWaitForARankThatIsSilent) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  expect_the_end_of_a_wait(Ranks::kOfTwoHostsOnOneGpu);
}

TEST(NcclOfTwoHostsOnOneGpu, NamesCallsThatDiffer) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  expect_the_names_of_calls_that_differ(Ranks::kOfTwoHostsOnOneGpu);
}

TEST(NcclOfTwoHostsOnOneGpu, NamesARankThatEnds) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  expect_the_name_of_a_rank_that_ends(Ranks::kOfTwoHostsOnOneGpu);
}

}  // namespace
}  // namespace lrun::detail::testing
