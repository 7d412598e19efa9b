// How a group fails: the same error on every rank, soon, and naming the rank to blame.

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CollectivesFailure : public ::testing::TestWithParam<std::string> {};

TEST_P(CollectivesFailure, NamesBothCallsOfAMismatch) {
  const auto errors = run_ranks(GetParam(), 3, [](Collectives& group) {
    group.barrier();
    at::Tensor tensor = at::ones({3, 4}, at::kFloat);
    if (group.rank() == 2) group.broadcast(tensor, 1);
    group.all_reduce(tensor, ReduceOp::kSum)->wait();
  });
  EXPECT_THAT(errors, Each(AllOf(StartsWith("CollectiveMismatch"),
                                 HasSubstr("rank 0 called all_reduce #2 of float32[3, 4] (sum), but rank 2 called "
                                           "broadcast #2 of float32[3, 4] from rank 1"))));
}

TEST_P(CollectivesFailure, SeesADifferenceOfShapeDtypeOpAndRoot) {
  const std::vector<std::pair<std::string, RankBody>> cases = {
      {"float32[2] (sum), but rank 1 called all_reduce #1 of float32[3] (sum)",
       [](Collectives& group) { group.all_reduce(at::ones({2 + group.rank()}), ReduceOp::kSum)->wait(); }},
      {"float32[6, 1] (sum), but rank 1 called all_reduce #1 of float32[3, 2] (sum)",
       [](Collectives& group) {
         group.all_reduce(at::ones({6 / (group.rank() + 1), 1 + group.rank()}), ReduceOp::kSum)->wait();
       }},
      {"float32[2] (sum), but rank 1 called all_reduce #1 of float64[2] (sum)",
       [](Collectives& group) {
         group.all_reduce(at::ones({2}, group.rank() == 0 ? at::kFloat : at::kDouble), ReduceOp::kSum)->wait();
       }},
      {"(max), but rank 1 called all_reduce #1 of float32[2] (min)",
       [](Collectives& group) {
         group.all_reduce(at::ones({2}), group.rank() == 0 ? ReduceOp::kMax : ReduceOp::kMin)->wait();
       }},
      {"(sum), tag 7, but rank 1 called all_reduce #1 of float32[2] (sum), tag 8",
       [](Collectives& group) {
         group.all_reduce(at::ones({2}), ReduceOp::kSum, 7 + static_cast<std::uint64_t>(group.rank()))->wait();
       }},
      {"from rank 0, but rank 1 called broadcast #1 of float32[2] from rank 1",
       [](Collectives& group) { group.broadcast(at::ones({2}), group.rank()); }},
      {"all_to_all #1 of float32[3], but rank 1 called all_to_all #1 of float32[4]",
       [](Collectives& group) {
         group.all_to_all(at::ones({2, 3 + group.rank()}), at::ones({2, 3 + group.rank()}));
       }},
      {"allocate_bucket #1 of float32[8], but rank 1 called allocate_bucket #1 of float32[9]",
       [](Collectives& group) { group.allocate_bucket(8 + group.rank(), at::kFloat); }},
  };
  for (const auto& [text, body] : cases) {
    EXPECT_THAT(run_ranks(GetParam(), 2, body), Each(AllOf(StartsWith("CollectiveMismatch"), HasSubstr(text))));
  }
}

TEST_P(CollectivesFailure, NamesTheRanksThatAreMissingAtTheDeadline) {
  SharedCounter timed_out;
  const auto errors = run_ranks(
      GetParam(), 4,
      [&](Collectives& group) {
        group.barrier();
        if (group.rank() % 2 == 1) return timed_out.wait_for(2);  // silent, not gone
        const std::string error = error_of([&] { group.all_reduce(at::ones({1000}), ReduceOp::kSum)->wait(); });
        timed_out.add();
        // Only the ranks of another host know which of them are silent.
        const std::string missing = GetParam() == "shm+gloo" ? "rank 1" : "ranks 1 and 3";
        require(
            error == "CollectiveTimeout: all_reduce #2 did not finish within 6000 ms: " + missing + " did not call it",
            error);
      },
      6s);  // LibTorch's store asks for the name of 127.0.0.1, and where that is lost it takes 5 s
  EXPECT_THAT(errors, Each(std::string()));
}

TEST_P(CollectivesFailure, ReportsARankThatLeftWithoutItsCall) {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = run_ranks(GetParam(), 3, [](Collectives& group) {
    group.barrier();
    if (group.rank() == 1) return;
    group.all_reduce(at::ones({1000}), ReduceOp::kSum)->wait();
  });
  EXPECT_EQ(errors[1], "");
  for (std::size_t rank : {0U, 2U}) {
    EXPECT_THAT(errors[rank], AllOf(StartsWith("PeerLost: rank 1 "), HasSubstr("left the group"), HasSubstr("#2")));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_P(CollectivesFailure, EndsEverybodysWaitWhenARankAborts) {
  const auto errors = run_ranks(GetParam(), 3, [](Collectives& group) {
    if (group.rank() == 2) group.abort("rank 2 ran out of data");
    group.all_reduce(at::ones({1000}), ReduceOp::kSum)->wait();
  });
  EXPECT_THAT(errors, Each(std::string("PeerLost: rank 2 ran out of data")));
}

TEST_P(CollectivesFailure, KeepsThrowingItsFirstError) {
  const auto errors = run_ranks(GetParam(), 2, [](Collectives& group) {
    group.abort("the first");
    group.abort("the second");
    const std::string expected = "PeerLost: the first";
    at::Tensor tensor = at::ones({2, 4});
    require(error_of([&] { group.barrier(); }) == expected, "barrier");
    require(error_of([&] { group.broadcast(tensor, 0); }) == expected, "broadcast");
    require(error_of([&] { group.all_reduce(tensor, ReduceOp::kSum)->wait(); }) == expected, "all_reduce");
    require(error_of([&] { group.all_gather(tensor, tensor[0]); }) == expected, "all_gather");
    require(error_of([&] { group.reduce_scatter(tensor[0], tensor, ReduceOp::kSum); }) == expected, "reduce_scatter");
    require(error_of([&] { group.all_to_all(tensor, at::ones({2, 4})); }) == expected, "all_to_all");
    require(error_of([&] { static_cast<void>(group.subgroup({0})); }) == expected, "subgroup");
    require(error_of([&] { group.allocate_bucket(1, at::kFloat); }) == expected, "allocate_bucket");
  });
  EXPECT_THAT(errors, Each(std::string()));
}

TEST_P(CollectivesFailure, WaitsWithTheLongestTimeoutToo) {
  SharedCounter entered;
  const auto errors = run_ranks(
      GetParam(), 2,
      [&](Collectives& group) {
        if (group.rank() == 1) entered.wait_for(1);
        const auto work = group.all_reduce(at::ones({8}), ReduceOp::kSum);
        entered.add();
        work->wait();
        require(group.timeout() == std::chrono::hours(24 * 3650), "the timeout is ten years");
      },
      std::chrono::milliseconds::max());
  EXPECT_THAT(errors, Each(std::string()));
}

TEST_P(CollectivesFailure, EndsTheWorkInFlightToo) {
  SharedCounter posted;
  const auto errors = run_ranks(GetParam(), 2, [&](Collectives& group) {
    std::vector<std::unique_ptr<CollectiveWork>> works;
    if (group.rank() == 0) {
      for (int i = 0; i < 4; ++i) works.push_back(group.all_reduce(at::ones({1000}), ReduceOp::kSum));
      posted.add();
    }
    if (group.rank() == 1) {
      posted.wait_for(1);
      group.abort("enough");
    }
    for (auto& work : works) {
      require(error_of([&] { work->wait(); }) == "PeerLost: enough", "work in flight");
      require(work->done(), "failed work is done");
    }
  });
  EXPECT_THAT(errors, Each(std::string()));
}

TEST_P(CollectivesFailure, EndsEverybodysWaitWhenTheArithmeticThrows) {
  const auto errors = run_ranks(GetParam(), 3, [](Collectives& group) {
    const at::Tensor tensor = at::ones({100'000});
    if (group.rank() == 1) tensor.storage().unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
    group.all_reduce(tensor, ReduceOp::kSum)->wait();
  });
  EXPECT_THAT(errors, Each(AllOf(StartsWith("error: "), HasSubstr("all_reduce #1: "))));
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesFailure, ::testing::Values("threads", "shm", "gloo", "shm+gloo"),
                         [](const ::testing::TestParamInfo<std::string>& backend) {
                           return backend.param == "shm+gloo" ? std::string("shm_and_gloo") : backend.param;
                         });

}  // namespace
}  // namespace lrun::detail::testing
