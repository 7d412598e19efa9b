// The contract of every implementation of Collectives, with 1 to 4 ranks.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

const std::vector<at::ScalarType> kReducible = {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble,
                                                at::kInt,  at::kLong,     at::kByte};

/// Element i of rank r: small whole numbers, so that every dtype holds their sums exactly.
at::Tensor numbers(int rank, std::int64_t count, at::ScalarType dtype) {
  return at::arange(count, at::kLong).remainder(13).add(rank).to(dtype);
}

at::Tensor sum_of_numbers(int world_size, std::int64_t count, at::ScalarType dtype) {
  at::Tensor sum = at::zeros({count}, at::kLong);
  for (int rank = 0; rank < world_size; ++rank) sum += numbers(rank, count, at::kLong);
  return sum.to(dtype);
}

class CollectivesContract : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  [[nodiscard]] static std::string backend() { return std::get<0>(GetParam()); }
  [[nodiscard]] static int world_size() { return std::get<1>(GetParam()); }

  static void expect_all_well(const RankBody& body) {
    const auto errors = run_ranks(backend(), world_size(), body);
    ASSERT_EQ(errors.size(), static_cast<std::size_t>(world_size()));
    for (std::size_t rank = 0; rank < errors.size(); ++rank) EXPECT_EQ(errors[rank], "") << "rank " << rank;
  }
};

TEST_P(CollectivesContract, KnowsRankWorldAndName) {
  expect_all_well([](Collectives& group) {
    require(group.world_size() == world_size(), "world size is " + std::to_string(group.world_size()));
    require(group.name() == backend(), "name is " + group.name());
    at::Tensor ranks = at::zeros({group.world_size()}, at::kLong);
    ranks[group.rank()] += group.rank();
    group.all_reduce(ranks, ReduceOp::kSum)->wait();
    require_equal(ranks, at::arange(group.world_size(), at::kLong), "every rank is there once");
  });
}

TEST_P(CollectivesContract, SumsEveryDtypeAndEverySize) {
  expect_all_well([](Collectives& group) {
    for (at::ScalarType dtype : kReducible) {
      for (std::int64_t count : {0, 1, 2, 3, 5, 31, 1021, 65'537, 300'007}) {
        at::Tensor tensor = numbers(group.rank(), count, dtype);
        group.all_reduce(tensor, ReduceOp::kSum)->wait();
        require_equal(tensor, sum_of_numbers(group.world_size(), count, dtype),
                      std::string(c10::toString(dtype)) + " of " + std::to_string(count));
      }
    }
  });
}

TEST_P(CollectivesContract, SumsBucketsInPlace) {
  expect_all_well([](Collectives& group) {
    for (at::ScalarType dtype : kReducible) {
      for (std::int64_t count : {0, 1, 7, 4097, 300'007}) {
        at::Tensor bucket = group.allocate_bucket(count, dtype);
        require_equal(bucket, at::zeros({count}, dtype), "a new bucket is zeroed");
        for (int step = 0; step < 3; ++step) {
          bucket.copy_(numbers(group.rank() + step, count, dtype));
          group.all_reduce(bucket, ReduceOp::kSum)->wait();
          const at::Tensor expected = sum_of_numbers(group.world_size(), count, at::kLong) + step * group.world_size();
          require_equal(bucket, expected.to(dtype), "bucket of " + std::to_string(count));
        }
      }
    }
  });
}

TEST_P(CollectivesContract, SumsAPartOfABucket) {
  expect_all_well([](Collectives& group) {
    at::Tensor bucket = group.allocate_bucket(50'000, at::kFloat);
    bucket.fill_(-1);
    at::Tensor part = bucket.slice(0, 17, 40'017);
    part.copy_(numbers(group.rank(), 40'000, at::kFloat));
    group.all_reduce(part, ReduceOp::kSum)->wait();
    require_equal(part, sum_of_numbers(group.world_size(), 40'000, at::kFloat), "the part");
    require_equal(bucket.slice(0, 0, 17), at::full({17}, -1, at::kFloat), "what lies before");
    require_equal(bucket.slice(0, 40'017), at::full({9'983}, -1, at::kFloat), "what lies behind");
  });
}

/// Around the sizes from which on a bucket takes another way than other memory.
TEST_P(CollectivesContract, TakesMemoryThatIsInABucketOnSomeRanksOnly) {
  expect_all_well([](Collectives& group) {
    const at::Tensor bucket = group.allocate_bucket(100'000, at::kFloat);
    for (const std::int64_t count : {1'000, 4'095, 4'096, 4'097, 8'192, 8'193, 12'000, 16'384, 16'385, 70'000}) {
      for (const int with_bucket : {0, 1, 2}) {  // rank 0, the others, all of them
        const bool in_bucket = with_bucket == 2 || (group.rank() == 0) == (with_bucket == 0);
        const at::Tensor tensor = in_bucket ? bucket.narrow(0, 3, count) : at::empty({count}, at::kFloat);
        const std::string what = std::to_string(count) + ", case " + std::to_string(with_bucket);
        tensor.copy_(numbers(group.rank(), count, at::kFloat));
        group.all_reduce(tensor, ReduceOp::kSum)->wait();
        require_equal(tensor, sum_of_numbers(group.world_size(), count, at::kFloat), "sum of " + what);
        const int root = group.world_size() - 1;
        tensor.copy_(numbers(group.rank(), count, at::kFloat));
        group.broadcast(tensor, root);
        require_equal(tensor, numbers(root, count, at::kFloat), "broadcast of " + what);
      }
    }
  });
}

TEST_P(CollectivesContract, TakesAverageMaximumAndMinimum) {
  expect_all_well([](Collectives& group) {
    const int last = group.world_size() - 1;
    for (at::ScalarType dtype : kReducible) {
      at::Tensor maximum = numbers(group.rank(), 1000, dtype);
      group.all_reduce(maximum, ReduceOp::kMax)->wait();
      require_equal(maximum, numbers(last, 1000, dtype), "maximum");
      at::Tensor minimum = numbers(group.rank(), 1000, dtype);
      group.all_reduce(minimum, ReduceOp::kMin)->wait();
      require_equal(minimum, numbers(0, 1000, dtype), "minimum");
      if (!at::isFloatingType(dtype)) continue;
      at::Tensor average = numbers(group.rank(), 1000, dtype);
      group.all_reduce(average, ReduceOp::kAverage)->wait();
      const at::Tensor sum = sum_of_numbers(group.world_size(), 1000, at::kDouble);
      require_equal(average, (sum / group.world_size()).to(dtype), "average");
    }
  });
}

TEST_P(CollectivesContract, RoundsAlikeOnAllRanks) {
  expect_all_well([](Collectives& group) {
    for (bool bucket : {false, true}) {
      for (std::int64_t count : {1'000, 200'003}) {
        const at::Tensor mine =
            at::arange(count, at::kFloat).mul(0.1F + 0.37F * static_cast<float>(group.rank())).sin();
        at::Tensor tensor = bucket ? group.allocate_bucket(count, at::kFloat) : at::empty({count}, at::kFloat);
        tensor.copy_(mine);
        group.all_reduce(tensor, ReduceOp::kAverage)->wait();
        at::Tensor all = at::empty({group.world_size(), count}, at::kFloat);
        group.all_gather(all, tensor);
        at::Tensor inputs = at::empty({group.world_size(), count}, at::kFloat);
        group.all_gather(inputs, mine);
        at::Tensor expected = inputs[0].clone();
        for (int rank = 1; rank < group.world_size(); ++rank) expected += inputs[rank];
        expected /= group.world_size();
        for (int rank = 0; rank < group.world_size(); ++rank) require_equal(all[rank], expected, "sum in rank order");
      }
    }
  });
}

TEST_P(CollectivesContract, BroadcastsFromEveryRoot) {
  expect_all_well([](Collectives& group) {
    for (int root = 0; root < group.world_size(); ++root) {
      for (at::ScalarType dtype : {at::kFloat, at::kBool, at::kComplexDouble}) {
        for (std::int64_t count : {0, 1, 5'000, 200'003}) {
          at::Tensor tensor = numbers(group.rank(), count, at::kLong).to(dtype);
          group.broadcast(tensor, root);
          require_equal(tensor, numbers(root, count, at::kLong).to(dtype), "root " + std::to_string(root));
        }
      }
      at::Tensor bucket = group.allocate_bucket(100'003, at::kFloat);
      bucket.fill_(group.rank());
      group.broadcast(bucket, root);
      require_equal(bucket, at::full({100'003}, root, at::kFloat), "bucket of root " + std::to_string(root));
    }
  });
}

TEST_P(CollectivesContract, GathersRowsInRankOrder) {
  expect_all_well([](Collectives& group) {
    for (bool bucket : {false, true}) {
      for (std::int64_t count : {0, 2, 4'098, 300'006}) {
        at::Tensor input = bucket ? group.allocate_bucket(count, at::kDouble) : at::empty({count}, at::kDouble);
        input.copy_(numbers(group.rank(), count, at::kDouble));
        at::Tensor output = at::empty({group.world_size(), 2, count / 2}, at::kDouble);
        group.all_gather(output, input.view({2, count / 2}));
        for (int rank = 0; rank < group.world_size(); ++rank) {
          require_equal(output[rank].flatten(), numbers(rank, count, at::kDouble), "row " + std::to_string(rank));
        }
      }
    }
  });
}

TEST_P(CollectivesContract, ScattersTheSumOfRows) {
  expect_all_well([](Collectives& group) {
    const int world = group.world_size();
    for (bool bucket : {false, true}) {
      for (std::int64_t count : {0, 1, 4'097, 150'001}) {
        at::Tensor input =
            (bucket ? group.allocate_bucket(world * count, at::kFloat) : at::empty({world * count}, at::kFloat))
                .view({world, count});
        for (int row = 0; row < world; ++row) input[row] = numbers(group.rank() + 2 * row, count, at::kFloat);
        const at::Tensor before = input.clone();
        at::Tensor output = at::empty({count}, at::kFloat);
        group.reduce_scatter(output, input, ReduceOp::kSum);
        const at::Tensor expected = sum_of_numbers(world, count, at::kFloat) + 2 * group.rank() * world;
        require_equal(output, expected, "row of " + std::to_string(count));
        require_equal(input, before, "the input is left as it was");
      }
    }
  });
}

TEST_P(CollectivesContract, MovesEachRowToItsRank) {
  expect_all_well([](Collectives& group) {
    const int world = group.world_size();
    for (bool bucket : {false, true}) {
      for (at::ScalarType dtype : {at::kFloat, at::kBool, at::kComplexDouble}) {
        for (std::int64_t count : {0, 2, 4'098, 100'002}) {
          const auto row = [&](int from, int to) { return numbers(5 * from + to, count, at::kLong).to(dtype); };
          at::Tensor input = (bucket ? group.allocate_bucket(world * count, dtype) : at::empty({world * count}, dtype))
                                 .view({world, 2, count / 2});
          for (int to = 0; to < world; ++to) input[to].flatten().copy_(row(group.rank(), to));
          const at::Tensor before = input.clone();
          at::Tensor output = at::empty_like(input);
          group.all_to_all(output, input);
          for (int from = 0; from < world; ++from) {
            require_equal(output[from].flatten(), row(from, group.rank()), "row of " + std::to_string(count));
          }
          require_equal(input, before, "the input is left as it was");
        }
      }
    }
  });
}

TEST_P(CollectivesContract, WorksInPlaceOnRowsOfTheOutput) {
  expect_all_well([](Collectives& group) {
    const int world = group.world_size();
    at::Tensor all = at::zeros({world, 100'003}, at::kFloat);
    all[group.rank()] = numbers(group.rank(), 100'003, at::kFloat);
    group.all_gather(all, all[group.rank()]);
    for (int rank = 0; rank < world; ++rank) require_equal(all[rank], numbers(rank, 100'003, at::kFloat), "gathered");
    group.reduce_scatter(all[group.rank()], all, ReduceOp::kSum);
    require_equal(all[group.rank()], numbers(group.rank(), 100'003, at::kFloat) * world, "scattered");
  });
}

TEST_P(CollectivesContract, FinishesManyOperationsInFlightInAnyOrderOfWaiting) {
  expect_all_well([](Collectives& group) {
    std::vector<at::Tensor> tensors;
    std::vector<std::unique_ptr<CollectiveWork>> works;
    for (int i = 0; i < 20; ++i) {
      const std::int64_t count = 1 + i * 3'001;
      tensors.push_back(i % 2 == 0 ? group.allocate_bucket(count, at::kFloat) : at::empty({count}, at::kFloat));
      tensors.back().fill_(group.rank() + i);
      works.push_back(group.all_reduce(tensors.back(), ReduceOp::kMax));
    }
    for (std::size_t i = works.size(); i-- > 0;) {
      works[i]->wait();
      require(works[i]->done(), "done after wait()");
      works[i]->wait();  // a second wait is harmless
      const auto expected = static_cast<double>(group.world_size() - 1) + static_cast<double>(i);
      require_equal(tensors[i], at::full_like(tensors[i], expected), "operation " + std::to_string(i));
    }
  });
}

TEST_P(CollectivesContract, MakesProgressWhileNobodyWaits) {
  expect_all_well([](Collectives& group) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (std::int64_t count : {10, 200'003}) {
      at::Tensor tensor = at::ones({count}, at::kFloat);
      const auto work = group.all_reduce(tensor, ReduceOp::kSum);
      while (!work->done()) {
        require(std::chrono::steady_clock::now() < deadline, "an all_reduce that nobody waits for does not end");
        std::this_thread::yield();
      }
      require_equal(tensor, at::full({count}, group.world_size(), at::kFloat), "done() means that the result is there");
    }
  });
}

TEST_P(CollectivesContract, LeavesNobodyBehindABarrier) {
  expect_all_well([](Collectives& group) {
    at::Tensor turn = at::zeros({1}, at::kLong);
    for (int i = 0; i < 200; ++i) {
      group.barrier();
      if (i % group.world_size() == group.rank()) turn += 1;
    }
    group.all_reduce(turn, ReduceOp::kSum)->wait();
    require(turn.item<std::int64_t>() == 200, "200 turns in all");
  });
}

TEST_P(CollectivesContract, RefusesWhatOneRankCanSeeAlone) {
  expect_all_well([](Collectives& group) {
    const auto refused = [](const std::string& why, const std::function<void()>& call) {
      const std::string error = error_of(call);
      require(error.starts_with("invalid_argument") && error.find(why) != std::string::npos, why + ": " + error);
    };
    at::Tensor matrix = at::ones({4, 6}, at::kFloat);
    refused("not contiguous", [&] { group.all_reduce(matrix.t(), ReduceOp::kSum); });
    refused("undefined", [&] { group.broadcast(at::Tensor(), 0); });
    refused("Bool cannot be reduced", [&] { group.all_reduce(at::ones({2}, at::kBool), ReduceOp::kSum); });
    refused("average of int64", [&] { group.all_reduce(at::ones({2}, at::kLong), ReduceOp::kAverage); });
    refused("no rank 99", [&] { group.broadcast(matrix, 99); });
    refused("*shape", [&] { group.all_gather(matrix, at::ones({5}, at::kFloat)); });
    refused("*shape", [&] { group.reduce_scatter(at::ones({5}, at::kFloat), matrix, ReduceOp::kSum); });
    const int world = group.world_size();
    const at::Tensor rows = at::ones({2 * world, 3}, at::kFloat);
    refused("share memory", [&] { group.all_to_all(rows.narrow(0, 0, world), rows.narrow(0, world - 1, world)); });
    refused("*shape", [&] { group.all_to_all(at::empty_like(rows), rows); });
    refused("*shape", [&] { group.all_to_all(at::ones({world}, at::kInt), at::ones({world}, at::kLong)); });
    refused("undefined", [&] { group.all_to_all(rows, at::Tensor()); });
    refused("-1 elements", [&] { group.allocate_bucket(-1, at::kFloat); });
    group.barrier();  // and the group is as good as before
  });
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<std::string, int>>& info) {
  const std::string& backend = std::get<0>(info.param);
  return (backend == "shm+gloo" ? "shm_and_gloo" : backend) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Single, CollectivesContract,
                         ::testing::Combine(::testing::Values("single"), ::testing::Values(1)), name_of);
INSTANTIATE_TEST_SUITE_P(Threads, CollectivesContract,
                         ::testing::Combine(::testing::Values("threads"), ::testing::Range(1, 5)), name_of);

INSTANTIATE_TEST_SUITE_P(Shm, CollectivesContract, ::testing::Combine(::testing::Values("shm"), ::testing::Range(1, 5)),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Gloo, CollectivesContract,
                         ::testing::Combine(::testing::Values("gloo"), ::testing::Range(1, 4)), name_of);

INSTANTIATE_TEST_SUITE_P(ShmAndGloo, CollectivesContract,
                         ::testing::Combine(::testing::Values("shm+gloo"), ::testing::Range(1, 5)), name_of);

}  // namespace
}  // namespace lrun::detail::testing
