// liblrun_cuda.so: that it loads everywhere, and where there are GPUs that its sums are right and its waits end.

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
#include "runtime/support/backend_ranks.h"

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

/// Runs `body` as processes with a GPU each.
std::vector<std::string> run_on_gpus(int world_size, const std::string& name, const RankBody& body,
                                     std::chrono::milliseconds timeout = 60s) {
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.emplace_back([rank, body, options = group_of(rank, world_size, name, timeout)] {
      ::setenv("CUDA_VISIBLE_DEVICES", std::to_string(rank).c_str(), 1);
      body(*make_collectives("nccl", options));
    });
  }
  std::vector<std::string> errors;
  for (RankProcess& rank : ranks) errors.push_back(rank.result());
  return errors;
}

at::TensorOptions on_gpu(at::ScalarType dtype) { return at::TensorOptions().dtype(dtype).device(at::kCUDA); }

void use_every_operation(Collectives& group) {
  const int world = group.world_size();
  for (at::ScalarType dtype : {at::kHalf, at::kFloat, at::kDouble, at::kLong}) {
    at::Tensor tensor = at::full({10'007}, group.rank() + 1, on_gpu(dtype));
    group.all_reduce(tensor, ReduceOp::kSum)->wait();
    require_equal(tensor.cpu(), at::full({10'007}, world * (world + 1) / 2, dtype), "the sum");
  }
  at::Tensor average = at::full({3}, 2 * group.rank(), on_gpu(at::kFloat));
  group.all_reduce(average, ReduceOp::kAverage)->wait();
  require_equal(average.cpu(), at::full({3}, world - 1, at::kFloat), "the average");
  at::Tensor told = at::full({5}, group.rank(), on_gpu(at::kInt));
  group.broadcast(told, world - 1);
  require_equal(told.cpu(), at::full({5}, world - 1, at::kInt), "the broadcast");
  at::Tensor all = at::full({world, 2}, -1, on_gpu(at::kFloat));
  group.all_gather(all, at::full({2}, group.rank(), on_gpu(at::kFloat)));
  require_equal(all.select(1, 1).cpu(), at::arange(world, at::kFloat), "all rows");
  at::Tensor mine = at::full({2}, 0, on_gpu(at::kFloat));
  group.reduce_scatter(mine, at::ones({world, 2}, on_gpu(at::kFloat)), ReduceOp::kSum);
  require_equal(mine.cpu(), at::full({2}, world, at::kFloat), "the own row");
  group.barrier();
  at::Tensor of_cpu = at::ones({3}, at::kDouble);
  group.all_reduce(of_cpu, ReduceOp::kSum)->wait();
  require_equal(of_cpu, at::full({3}, world, at::kDouble), "a tensor of the CPU");
}

TEST(NcclOnOneGpu, DoesEveryOperation) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_THAT(run_on_gpus(1, "one-gpu", use_every_operation), Each(std::string()));
}

TEST(NcclOnTwoGpus, DoesEveryOperation) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  EXPECT_THAT(run_on_gpus(2, "two-gpus", use_every_operation), Each(std::string()));
}

TEST(NcclOnTwoGpus, EndsTheWaitForARankThatIsSilent) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  SharedCounter timed_out;
  EXPECT_THAT(run_on_gpus(
                  2, "silent-gpu",
                  [&](Collectives& group) {
                    group.barrier();
                    if (group.rank() == 1) return timed_out.wait_for(1);
                    const std::string error = error_of([&] { group.barrier(); });
                    timed_out.add();
                    require(error.starts_with(
                                "CollectiveTimeout: barrier #2 did not finish within 5000 ms: rank 1 did not call it"),
                            error);
                  },
                  5s),
              Each(std::string()));
}

TEST(NcclOnTwoGpus, NamesCallsThatDiffer) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  const auto errors = run_on_gpus(2, "different-calls", [](Collectives& group) {
    group.barrier();
    at::Tensor tensor = at::ones({4}, on_gpu(at::kFloat));
    if (group.rank() == 0) return group.broadcast(tensor, 1), group.barrier();
    group.all_gather(at::empty({2, 4}, on_gpu(at::kFloat)), tensor), group.barrier();
  });
  EXPECT_THAT(errors, Each(StartsWith("CollectiveMismatch: rank 0 called broadcast #2 of float32[4] from rank 1, but "
                                      "rank 1 called all_gather #2 of float32[4]")));
}

TEST(NcclOnTwoGpus, NamesARankThatEnds) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  const auto errors = run_on_gpus(2, "dead-gpu", [](Collectives& group) {
    group.barrier();
    if (group.rank() == 1) ::_exit(0);
    group.barrier();
  });
  EXPECT_THAT(errors[0], StartsWith("PeerLost: rank 1 ended during barrier #2"));
}

}  // namespace
}  // namespace lrun::detail::testing
