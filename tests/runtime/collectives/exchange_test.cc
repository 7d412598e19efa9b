// Values of any size between ranks, over every backend that CPUs have.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/exchange.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

/// Rank r's: (rows, 3), different on each rank.
at::Tensor rows_of(int rank, std::int64_t rows, at::ScalarType dtype = at::kFloat) {
  return (at::arange(rows * 3, at::kLong).remainder(11) + 17 * rank).to(dtype).view({rows, 3});
}

std::string bytes_of_rank(int rank, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + static_cast<std::size_t>(rank));
  return bytes;
}

/// Sizes that differ between ranks, among them none, and sizes for each of the ways that a backend moves data.
const std::vector<std::int64_t> kScales = {0, 1, 5, 3'000, 200'000};

std::int64_t rows_at(std::int64_t scale, int rank) { return scale * (rank % 3); }

class Exchange : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  static void expect_all_well(const RankBody& body) {
    const auto [backend, world_size] = GetParam();
    const auto errors = run_ranks(backend, world_size, body);
    for (std::size_t rank = 0; rank < errors.size(); ++rank) EXPECT_EQ(errors[rank], "") << "rank " << rank;
  }
};

TEST_P(Exchange, GathersTensorsOfEqualSizesOnEveryRank) {
  expect_all_well([](Collectives& group) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBool, at::kLong, at::kComplexDouble}) {
      const auto all = all_gather(group, rows_of(group.rank(), 4, dtype));
      require(all.size() == static_cast<std::size_t>(group.world_size()), "one tensor a rank");
      for (int rank = 0; rank < group.world_size(); ++rank) {
        const at::Tensor& part = all[static_cast<std::size_t>(rank)];
        require_equal(part, rows_of(rank, 4, dtype), "rank " + std::to_string(rank));
        require(part.storage().nbytes() == part.nbytes(), "a tensor has its own memory");
      }
    }
  });
}

TEST_P(Exchange, GathersTensorsOfDifferentSizesOnEveryRank) {
  expect_all_well([](Collectives& group) {
    for (const std::int64_t scale : kScales) {
      const auto all = all_gather(group, rows_of(group.rank(), rows_at(scale, group.rank())));
      for (int rank = 0; rank < group.world_size(); ++rank) {
        require_equal(all.at(static_cast<std::size_t>(rank)), rows_of(rank, rows_at(scale, rank)),
                      "scale " + std::to_string(scale) + ", rank " + std::to_string(rank));
      }
    }
  });
}

TEST_P(Exchange, GathersTensorsOnOneRank) {
  expect_all_well([](Collectives& group) {
    for (int receiver = 0; receiver < group.world_size(); ++receiver) {
      const auto all = gather(group, rows_of(group.rank(), rows_at(40, group.rank())), receiver);
      if (group.rank() != receiver) {
        require(all.empty(), "the others get nothing");
        continue;
      }
      for (int rank = 0; rank < group.world_size(); ++rank) {
        require_equal(all.at(static_cast<std::size_t>(rank)), rows_of(rank, rows_at(40, rank)), std::to_string(rank));
      }
    }
  });
}

TEST_P(Exchange, TakesViewsAndScalarsAndKeepsTheInput) {
  expect_all_well([](Collectives& group) {
    const at::Tensor mine = rows_of(group.rank(), 6).requires_grad_();
    const auto columns = all_gather(group, mine.t());
    const auto numbers = all_gather(group, at::full({}, group.rank(), at::kDouble));
    const auto conjugates = all_gather(group, at::conj(at::complex(at::ones({2}), at::ones({2}))));
    for (int rank = 0; rank < group.world_size(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      require_equal(columns.at(index), rows_of(rank, 6).t().contiguous(), "columns");
      require_equal(numbers.at(index), at::full({}, rank, at::kDouble), "numbers");
      require_equal(conjugates.at(index), at::complex(at::ones({2}), -at::ones({2})), "conjugates");
      require(!columns[index].requires_grad(), "results have no gradients");
      columns[index].zero_();
    }
    require_equal(mine.detach(), rows_of(group.rank(), 6), "the input");
  });
}

TEST_P(Exchange, ScattersTensorsOfAnyShapes) {
  expect_all_well([](Collectives& group) {
    const auto piece = [](int rank) {
      return rank % 2 == 0 ? rows_of(rank, 1'000 * rank) : rows_of(rank, 2, at::kDouble).view({2, 3, 1});
    };
    for (int root = 0; root < group.world_size(); ++root) {
      std::vector<at::Tensor> pieces;
      for (int rank = 0; group.rank() == root && rank < group.world_size(); ++rank) pieces.push_back(piece(rank));
      require_equal(scatter(group, pieces, root), piece(group.rank()), "from root " + std::to_string(root));
    }
  });
}

TEST_P(Exchange, MovesATensorOfAnyShapeToEveryRank) {
  expect_all_well([](Collectives& group) {
    const int world = group.world_size();
    for (const std::int64_t scale : kScales) {
      const auto piece = [&](int from, int to) {
        const int number = from + 4 * to;
        return number % 2 == 0 ? rows_of(number, rows_at(scale, number), at::kBool)
                               : rows_of(number, 2 * scale, at::kDouble).view({2, scale, 3});
      };
      std::vector<at::Tensor> pieces;
      for (int to = 0; to < world; ++to) pieces.push_back(piece(group.rank(), to));
      const auto mine = all_to_all(group, pieces);
      for (int from = 0; from < world; ++from) {
        const at::Tensor& part = mine.at(static_cast<std::size_t>(from));
        require_equal(part, piece(from, group.rank()),
                      "scale " + std::to_string(scale) + ", from " + std::to_string(from));
        require(part.storage().nbytes() == part.nbytes(), "a tensor has its own memory");
      }
    }
    const auto scalars =
        all_to_all(group, std::vector(static_cast<std::size_t>(world), at::scalar_tensor(group.rank())));
    require_equal(scalars.back(), at::scalar_tensor(world - 1), "a tensor of no dimensions");
  });
}

TEST_P(Exchange, MovesBytesOfAnySize) {
  expect_all_well([](Collectives& group) {
    for (const std::size_t size : {0UL, 1UL, 1'000UL, 3'000'000UL}) {
      const auto size_at = [&](int rank) { return size * static_cast<std::size_t>(rank + 1); };
      const std::string mine = bytes_of_rank(group.rank(), size_at(group.rank()));
      const auto all = all_gather(group, mine);
      for (int rank = 0; rank < group.world_size(); ++rank) {
        const std::string expected = bytes_of_rank(rank, size_at(rank));
        require(all.at(static_cast<std::size_t>(rank)) == expected, "all_gather of rank " + std::to_string(rank));
        require(broadcast(group, mine, rank) == expected, "broadcast of rank " + std::to_string(rank));
        const auto here = gather(group, mine, rank);
        require(group.rank() == rank ? here == all : here.empty(), "gather on rank " + std::to_string(rank));
      }
    }
  });
}

TEST_P(Exchange, RefusesShapesThatDifferOnAllRanksWhichThenGoOn) {
  expect_all_well([](Collectives& group) {
    const bool is_last = group.rank() == group.world_size() - 1;
    const auto error = error_of([&] {
      static_cast<void>(all_gather(group, is_last ? at::zeros({5, 4}, at::kLong) : at::zeros({5, 3})));
    });
    const std::string last = std::to_string(group.world_size() - 1);
    const std::string expected = "CollectiveMismatch: all_gather: rank 0 has Float [5, 3], rank " + last +
                                 " has Long [5, 4]: only dimension 0 may differ";
    require(group.world_size() == 1 ? error.empty() : error == expected, "the error is: " + error);
    require(all_gather(group, "after").size() == static_cast<std::size_t>(group.world_size()), "the group is usable");
  });
}

TEST_P(Exchange, RefusesReceiversThatDifferOnAllRanksWhichThenGoOn) {
  expect_all_well([](Collectives& group) {
    const int last = group.world_size() - 1;
    const std::string number = std::to_string(last);
    const std::string expected = "CollectiveMismatch: gather: rank 0 gathers on rank 0, rank " + number + " on rank " +
                                 number + ": give all ranks the same receiver";
    const auto require_refused = [&](const std::function<void()>& call) {
      const auto error = error_of(call);
      require(last == 0 ? error.empty() : error == expected, "the error is: " + error);
    };
    const int receiver = group.rank() == last ? last : 0;
    require_refused([&] { static_cast<void>(gather(group, rows_of(group.rank(), 2), receiver)); });
    require_refused([&] { static_cast<void>(gather(group, "bytes", receiver)); });
    require(all_gather(group, "after").size() == static_cast<std::size_t>(group.world_size()), "the group is usable");
  });
}

INSTANTIATE_TEST_SUITE_P(Alone, Exchange, ::testing::Combine(::testing::Values("single"), ::testing::Values(1)),
                         name_of_group);
INSTANTIATE_TEST_SUITE_P(Groups, Exchange,
                         ::testing::Combine(::testing::Values("threads", "shm", "gloo", "shm+gloo"),
                                            ::testing::Values(2, 3, 4)),
                         name_of_group);

TEST(ExchangeAlone, RefusesWhatOneRankCanSeeToBeWrong) {
  const auto errors = run_ranks("single", 1, [](Collectives& group) {
    const auto refuses = [](const std::function<void()>& call, const std::string& why) {
      require(error_of(call) == "invalid_argument: " + why, error_of(call));
    };
    refuses([&] { static_cast<void>(gather(group, at::ones({1}), 1)); }, "gather: there is no rank 1 in a group of 1");
    refuses([&] { static_cast<void>(scatter(group, {}, -1)); }, "scatter: there is no rank -1 in a group of 1");
    refuses(
        [&] {
          static_cast<void>(scatter(group, {at::ones({1}), at::ones({1})}, 0));
        },
        "scatter: the number of tensors is 2, and that of ranks 1");
    refuses([&] { static_cast<void>(all_to_all(group, {})); },
            "all_to_all: the number of tensors is 0, and that of ranks 1");
    refuses([&] { static_cast<void>(all_gather(group, at::Tensor())); }, "all_gather: the tensor is undefined");
    refuses([&] { static_cast<void>(all_gather(group, at::ones({2}).to_sparse())); },
            "all_gather: the tensor is not dense");
    refuses([&] { static_cast<void>(all_gather(group, at::ones(std::vector<std::int64_t>(17, 1)))); },
            "all_gather: a tensor of 17 dimensions: at most 16");
  });
  EXPECT_EQ(errors, std::vector<std::string>{""});
}

}  // namespace
}  // namespace lrun::detail::testing
