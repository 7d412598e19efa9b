// The backend 'nccl' on the stand-in for CUDA and NCCL: its sums and its order in streams with random delays, ranks
// that are silent, die or abort, and an error of every call.

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/error.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/stand_in/communicators.h"
#include "runtime/stand_in/expectations.h"
#include "runtime/stand_in/machine.h"
#include "runtime/stand_in/rank_threads.h"
#include "runtime/stand_in/script.h"
#include "runtime/support/exchange_on_gpu.h"

namespace lrun::test::stand_in {
namespace {

using namespace std::chrono_literals;
using detail::testing::require;
using detail::testing::require_equal;
using detail::testing::SharedCounter;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

at::TensorOptions on_device_of(const Collectives& group, at::ScalarType dtype = at::kFloat) {
  return at::TensorOptions().dtype(dtype).device(at::kCUDA, static_cast<c10::DeviceIndex>(group.rank()));
}

void sum_in_order(Collectives& group, int round) {
  const int world = group.world_size();
  at::Tensor tensor = at::full({101}, group.rank() + round, on_device_of(group, at::kDouble));
  const auto work = group.all_reduce(tensor, ReduceOp::kSum);
  at::Tensor second = at::full({7}, group.rank(), on_device_of(group, at::kLong));
  const auto largest = group.all_reduce(second, ReduceOp::kMax);
  work->wait();
  tensor.fill_(at::Scalar(-1));  // behind the sum
  largest->wait();
  require_equal(second.cpu(), at::full({7}, world - 1, at::kLong), "the largest");
  require_equal(tensor.cpu(), at::full({101}, -1, at::kDouble), "what was written behind the sum");
  tensor.fill_(group.rank() + round);
  group.all_reduce(tensor, ReduceOp::kAverage)->wait();
  require_equal(tensor.cpu(), at::full({101}, round + (world - 1) / 2.0, at::kDouble), "the average");
}

void move_in_order(Collectives& group) {
  const int world = group.world_size();
  at::Tensor told = at::full({5}, group.rank(), on_device_of(group, at::kLong));
  group.broadcast(told, world - 1);
  require_equal(told.cpu(), at::full({5}, world - 1, at::kLong), "the broadcast");
  at::Tensor all = at::empty({world, 3}, on_device_of(group));
  group.all_gather(all, at::full({3}, group.rank(), on_device_of(group)));
  require_equal(all.cpu().select(1, 1).contiguous(), at::arange(world, at::kFloat), "all rows");
  at::Tensor mine = at::empty({3}, on_device_of(group));
  group.reduce_scatter(mine, at::ones({world, 3}, on_device_of(group)), ReduceOp::kSum);
  require_equal(mine.cpu(), at::full({3}, world, at::kFloat), "the own row");
}

void move_rows(Collectives& group) {
  const int world = group.world_size();
  for (const at::TensorOptions& options : {on_device_of(group, at::kLong), at::TensorOptions().dtype(at::kLong)}) {
    const at::Tensor rows = at::arange(world, at::kLong).add(10 * group.rank()).view({world, 1}).expand({world, 3});
    at::Tensor moved = at::empty({world, 3}, options);
    group.all_to_all(moved, rows.contiguous().to(options.device()));
    const at::Tensor expected = at::arange(world, at::kLong).mul(10).add(group.rank());
    require_equal(moved.cpu().select(1, 2).contiguous(), expected, "a row of each rank");
  }
}

/// Every operation; each result has to be right.
void use_every_operation(Collectives& group) {
  group.barrier();
  sum_in_order(group, 3);
  move_in_order(group);
  move_rows(group);
  at::Tensor of_cpu = at::ones({3}, at::kDouble);
  group.all_reduce(of_cpu, ReduceOp::kSum)->wait();
  require_equal(of_cpu, at::full({3}, group.world_size(), at::kDouble), "a tensor of the CPU");
  const at::Tensor bucket = group.allocate_bucket(11, at::kFloat);
  require_equal(bucket.cpu(), at::full({11}, 0, at::kFloat), "a new bucket");
}

/// An abort leaves a result as it is, and the next call tells why.
void use_until_it_fails(Collectives& group) {
  try {
    use_every_operation(group);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    group.barrier();
    throw;
  }
}

TEST(NcclOnStandIn, DoesEveryOperationWhateverIsLate) {
  for (const std::uint64_t seed : seeds()) {
    for (int ranks = 1; ranks <= kDevices; ++ranks) {
      SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed) + ", ranks: " + std::to_string(ranks));
      begin_run(seed, 2ms);
      EXPECT_THAT(run_on_stand_in(ranks, use_every_operation), Each(std::string()));
      expect_order();
    }
  }
}

TEST(NcclOnStandIn, ExchangesValuesOfAnySizeWhateverIsLate) {
  for (const std::uint64_t seed : seeds()) {
    for (int ranks = 1; ranks <= kDevices; ++ranks) {
      SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed) + ", ranks: " + std::to_string(ranks));
      begin_run(seed, 1ms);
      const auto body = [](Collectives& group) {
        detail::testing::use_every_exchange(group, on_device_of(group).device());
      };
      EXPECT_THAT(run_on_stand_in(ranks, body), Each(std::string()));
      expect_order();
    }
  }
}

TEST(NcclOnStandIn, ReducesEveryDtype) {
  begin_run(1, 0ms);
  const auto body = [](Collectives& group) {
    for (const at::ScalarType dtype :
         {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kInt, at::kLong, at::kByte}) {
      at::Tensor tensor = at::full({9}, group.rank() + 1, on_device_of(group, dtype));
      group.all_reduce(tensor, ReduceOp::kSum)->wait();
      require_equal(tensor.cpu(), at::full({9}, 3, dtype), c10::toString(dtype));
    }
  };
  EXPECT_THAT(run_on_stand_in(2, body), Each(std::string()));
  expect_order();
}

TEST(NcclOnStandIn, KeepsMemoryUntilTheSumIsDone) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed));
    begin_run(seed, 2ms);
    const auto body = [](Collectives& group) {
      for (int round = 0; round < 6; ++round) {
        group.all_reduce(at::full({33}, 1, on_device_of(group)), ReduceOp::kSum);  // nobody keeps it, nobody waits
        const at::Tensor next = at::full({33}, 5, on_device_of(group));            // may not have its memory
        require_equal(next.cpu(), at::full({33}, 5, at::kFloat), "a new tensor");
      }
      group.barrier();
    };
    EXPECT_THAT(run_on_stand_in(2, body), Each(std::string()));
    expect_order();
  }
}

TEST(NcclOnStandIn, KeepsMemoryOfACallThatFailedAfterItsBegin) {
  begin_run(1, 2ms);
  inject({{"cudaEventRecord", "liblrun_cuda.so", 0}, 2, cudaErrorIllegalAddress});  // behind the operation
  const auto body = [](Collectives& group) {
    std::optional<at::Tensor> tensor = at::full({33}, 1, on_device_of(group));
    const std::string error = text_of_error([&] { group.all_reduce(*tensor, ReduceOp::kSum)->wait(); });
    require(error.empty() == (group.rank() == 1), error);
    tensor.reset();
    const at::Tensor next = at::full({33}, 5, on_device_of(group));
    require_equal(next.cpu(), at::full({33}, 5, at::kFloat), "a new tensor");
    group.barrier();
  };
  EXPECT_THAT(run_on_stand_in(2, body), Each(std::string()));
  EXPECT_TRUE(was_injected());
  expect_order();
}

TEST(NcclOnStandIn, TakesNoFailedQueryForTheEndOfABarrier) {
  begin_run(1, 1ms);
  SharedCounter told;
  const auto body = [&](Collectives& group) {
    group.barrier();
    if (group.rank() == 1) return told.wait_for(1);
    const CallSite query{"cudaEventQuery", "liblrun_cuda.so", 0};
    inject({query, calls()[query] + 3, cudaErrorIllegalAddress});
    const std::string error = text_of_error([&] { group.barrier(); });
    told.add();
    throw Error(error);
  };
  EXPECT_THAT(run_on_stand_in(2, body, 10s)[0], HasSubstr("backend 'nccl': cudaEventQuery: an illegal memory access"));
  expect_order();
}

TEST(NcclOnStandIn, ShowsATestThatDoesNotWait) {
  begin_run(1, 2ms);
  const auto body = [](Collectives& group) {
    at::Tensor tensor = at::ones({33}, on_device_of(group));
    const auto work = group.all_reduce(tensor, ReduceOp::kSum);
    static_cast<void>(tensor.cpu());
    work->wait();
    group.barrier();
  };
  EXPECT_THAT(run_on_stand_in(2, body), Each(std::string()));
  EXPECT_THAT(take_misuse(), Contains(AllOf(HasSubstr("copy_"), HasSubstr("ncclAllReduce"), HasSubstr("orders"))));
}

TEST(NcclOnStandIn, EndsTheWaitForARankThatIsSilent) {
  begin_run(1, 1ms);
  SharedCounter timed_out;
  const auto body = [&](Collectives& group) {
    group.barrier();
    if (group.rank() == 1) return timed_out.wait_for(1);
    const std::string error = text_of_error([&] { group.barrier(); });
    timed_out.add();
    require(error.starts_with("CollectiveTimeout: barrier #2 did not finish within 1000 ms: rank 1 did not call it"),
            error);
  };
  EXPECT_THAT(run_on_stand_in(2, body, 1s), Each(std::string()));
  expect_order();
}

TEST(NcclOnStandIn, EndsACopyThatWaitsInTheDriverForARankThatIsSilent) {
  begin_run(1, 1ms);
  SharedCounter timed_out;
  const auto body = [&](Collectives& group) {
    at::Tensor tensor = at::ones({3}, on_device_of(group));
    group.all_reduce(tensor, ReduceOp::kSum)->wait();
    if (group.rank() == 1) return timed_out.wait_for(1);
    group.all_reduce(tensor, ReduceOp::kSum)->wait();
    static_cast<void>(tensor.cpu());
    const std::string error = text_of_error([&] { group.barrier(); });
    timed_out.add();
    require(error.starts_with("CollectiveTimeout: all_reduce #2 did not finish within 1000 ms: rank 1 did not call it"),
            error);
  };
  EXPECT_THAT(run_on_stand_in(2, body, 1s), Each(std::string()));
  expect_order();
}

TEST(NcclOnStandIn, EndsTheWaitForARankThatIsSilentFromTheBeginning) {
  begin_run(1, 1ms);
  SharedCounter timed_out;
  const auto body = [&](Collectives& group) {
    if (group.rank() == 1) return timed_out.wait_for(1);
    at::Tensor tensor = at::ones({3}, on_device_of(group));
    const std::string error = text_of_error([&] { group.all_reduce(tensor, ReduceOp::kSum)->wait(); });
    timed_out.add();
    require(error.starts_with("CollectiveTimeout: all_reduce #1 did not finish within 1000 ms: rank 1 did not call it"),
            error);
  };
  EXPECT_THAT(run_on_stand_in(2, body, 1s), Each(std::string()));
  expect_order();
}

TEST(NcclOnStandIn, BlamesTheGpuThatHasNotBegun) {
  begin_run(1, 1ms);
  SharedCounter begun;
  const auto body = [&](Collectives& group) {
    group.barrier();
    at::Tensor tensor = at::ones({3}, on_device_of(group));
    if (group.rank() == 1) {
      begun.wait_for(1);
      std::this_thread::sleep_for(500ms);  // so that its deadline is the later one
      return group.all_reduce(tensor, ReduceOp::kSum)->wait(), group.barrier();
    }
    Obstacle obstacle(default_stream(0));
    const auto work = group.all_reduce(tensor, ReduceOp::kSum);
    begun.add();
    while (!work->done()) std::this_thread::sleep_for(1ms);
    obstacle.remove();
    work->wait();
  };
  EXPECT_THAT(run_on_stand_in(2, body, 1s),
              Each(StartsWith("CollectiveTimeout: all_reduce #2 did not begin within 1000 ms: the GPU of rank 0")));
  expect_order();
}

TEST(NcclOnStandIn, NamesCallsThatDiffer) {
  begin_run(1, 1ms);
  const auto body = [](Collectives& group) {
    group.barrier();
    at::Tensor tensor = at::ones({4}, on_device_of(group));
    if (group.rank() == 0) return group.broadcast(tensor, 1), group.barrier();
    group.all_gather(at::empty({2, 4}, on_device_of(group)), tensor), group.barrier();
  };
  EXPECT_THAT(run_on_stand_in(2, body, 4s),
              Each(StartsWith("CollectiveMismatch: rank 0 called broadcast #2 of float32[4] from rank 1, but "
                              "rank 1 called all_gather #2 of float32[4]")));
  expect_order();
}

TEST(NcclOnStandIn, TellsAllRanksOfOneThatEnds) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed));
    begin_run(seed, 1ms);
    const auto body = [](Collectives& group) {
      group.barrier();
      if (group.rank() == 2) throw std::runtime_error("a mistake");
      at::Tensor tensor = at::ones({4}, on_device_of(group));
      group.all_reduce(tensor, ReduceOp::kSum)->wait();
      group.barrier();
    };
    const std::vector<std::string> errors = run_on_stand_in(3, body);
    EXPECT_THAT(errors[0], StartsWith("PeerLost: rank 2 left the group before all_reduce #2"));
    EXPECT_THAT(errors[1], StartsWith("PeerLost: rank 2 left the group before all_reduce #2"));
    expect_order();
  }
}

TEST(NcclOnStandIn, LetsAnOperationEndAfterARankThatHasDoneItsPart) {
  begin_run(1, 100ms);  // longer than the watchdog waits between two looks
  RankThreads ranks(2, 30s);
  const auto body = [&](Collectives& group) {
    at::Tensor tensor = at::full({4}, group.rank(), on_device_of(group));
    group.broadcast(tensor, 1);
    if (group.rank() == 1) ranks.leave(1);
    require_equal(tensor.cpu(), at::full({4}, 1, at::kFloat), "the broadcast");
    group.barrier();
  };
  EXPECT_THAT(run_on_stand_in(ranks, body), Each(std::string()));
}

TEST(NcclOnStandIn, TellsAllRanksOfAnAbortInTheMiddle) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed));
    begin_run(seed, 1ms);
    const auto body = [&](Collectives& group) {
      std::thread aborting;
      if (group.rank() == 1) {
        aborting = std::thread([&] {
          std::this_thread::sleep_for(random_delay() * 20);
          group.abort("rank 1 has had enough");
        });
      }
      std::string error;
      for (int round = 0; error.empty(); ++round) error = text_of_error([&] { sum_in_order(group, round); });
      if (error.starts_with("error: "))
        error = text_of_error([&] { group.barrier(); });  // a result that the abort left
      if (aborting.joinable()) aborting.join();
      throw PeerLost(error);
    };
    EXPECT_THAT(run_on_stand_in(3, body),
                Each(AnyOf(HasSubstr("PeerLost: rank 1 has had enough"), HasSubstr("PeerLost: rank 1 ended during"))));
    expect_order();
  }
}

TEST(NcclOnStandIn, TellsOfAConnectionThatNcclLost) {
  begin_run(1, 1ms);
  SharedCounter lost;
  const auto body = [&](Collectives& group) {
    group.barrier();
    if (group.rank() == 1) return lost.wait_for(1);
    at::Tensor tensor = at::ones({4}, on_device_of(group));
    const auto work = group.all_reduce(tensor, ReduceOp::kSum);
    lose_connections(0);
    while (!work->done()) std::this_thread::sleep_for(1ms);
    lost.add();
    work->wait();
  };
  EXPECT_THAT(run_on_stand_in(2, body, 5s),
              ElementsAre("PeerLost: NCCL lost another rank during all_reduce #2: remote process exited or there was a "
                          "network error",
                          ""));
  expect_order();
}

TEST(NcclOnStandIn, IsDestroyedWhileItIsBusy) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed));
    begin_run(seed, 2ms);
    const auto body = [](Collectives& group) {
      for (int round = 0; round < 3; ++round) {
        group.all_reduce(at::ones({64}, on_device_of(group)), ReduceOp::kSum);
      }
    };
    EXPECT_THAT(run_on_stand_in(3, body), Each(std::string()));
    expect_order();
  }
}

TEST(NcclOnStandIn, IsDestroyedAtTheDeadlineWhenAnotherRankNeverComes) {
  begin_run(1, 1ms);
  const auto body = [&](Collectives& group) {
    group.barrier();
    if (group.rank() == 0)
      return static_cast<void>(group.all_reduce(at::ones({64}, on_device_of(group)), ReduceOp::kSum));
    while (live().communicators == 2) std::this_thread::sleep_for(1ms);
  };
  EXPECT_THAT(run_on_stand_in(2, body, 1s), Each(std::string()));
  expect_order();
}

TEST(NcclOnStandIn, SaysThatAKernelBrokeTheGpu) {
  begin_run(1, 1ms);
  const auto body = [](Collectives& group) {
    group.barrier();
    if (group.rank() == 0) break_device(0, cudaErrorIllegalAddress);
    const std::string error = text_of_error([&] { group.barrier(), group.barrier(); });
    if (group.rank() == 0) break_device(0, cudaSuccess);  // LibTorch ends the program when it frees memory otherwise
    throw Error(error);
  };
  const std::vector<std::string> errors = run_on_stand_in(2, body, 1s);
  EXPECT_THAT(errors[0], HasSubstr("illegal memory access"));
  EXPECT_THAT(errors[1], HasSubstr("PeerLost: rank 0 left the group before barrier #"));
}

TEST(NcclOnStandIn, NamesTheCallThatFailed) {
  begin_run(7, 0ms);
  ASSERT_THAT(run_on_stand_in(2, use_every_operation, 5s), Each(std::string()));
  expect_order();
  const std::vector<Fault> faults = faults_of_all_calls(1);
  EXPECT_GT(faults.size(), 50U);
  for (const Fault& fault : faults) {
    SCOPED_TRACE(name_of(fault));
    begin_run(7, 0ms);
    inject(fault);
    const std::vector<std::string> errors = run_on_stand_in(2, use_until_it_fails, 5s);
    expect_name_of(fault, errors[1]);
    EXPECT_THAT(errors[0],
                AnyOf(StartsWith("PeerLost: rank 1 ended "), StartsWith("PeerLost: rank 1 left "), IsEmpty()));
    if (errors[1].empty()) {
      EXPECT_EQ(errors[0], "");
    }
  }
}

}  // namespace
}  // namespace lrun::test::stand_in
