// Groups of some of the ranks, of every backend that CPUs have.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/exchange.h>
#include <signal.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/collectives/registry.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::size_t files_in(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

void require_sum(Collectives& group, int mine, int expected) {
  at::Tensor tensor = at::full({3'000}, mine, at::kLong);
  group.all_reduce(tensor, ReduceOp::kSum)->wait();
  require_equal(tensor, at::full({3'000}, expected, at::kLong),
                "the sum of a group of " + std::to_string(group.world_size()));
}

class Subgroup : public ::testing::TestWithParam<std::string> {
 protected:
  static void expect_all_well(int world_size, const RankBody& body, std::chrono::milliseconds timeout = 30s) {
    const auto errors = run_ranks(GetParam(), world_size, body, timeout);
    for (std::size_t rank = 0; rank < errors.size(); ++rank) EXPECT_EQ(errors[rank], "") << "rank " << rank;
  }
};

TEST_P(Subgroup, IsMadeForEveryRankInOneCall) {
  expect_all_well(4, [](Collectives& group) {
    const std::vector<int> members = group.rank() % 2 == 0 ? std::vector{0, 2} : std::vector{3, 1};
    const auto half = group.subgroup(members);
    require(half->world_size() == 2, "of two ranks");
    require(members.at(static_cast<std::size_t>(half->rank())) == group.rank(), "ranks in the order of the list");
    require(half->timeout() == group.timeout(), "the same timeout");
    require_sum(*half, group.rank(), group.rank() % 2 == 0 ? 2 : 4);
    at::Tensor rows = at::empty({2, 1}, at::kInt);
    half->all_gather(rows, at::full({1}, group.rank(), at::kInt));
    require_equal(rows.flatten(), at::tensor(members, at::kInt), "the rows");
    require_sum(group, group.rank(), 6);  // the ranks of all are a group as before
    require_sum(*half, group.rank(), group.rank() % 2 == 0 ? 2 : 4);
  });
}

TEST_P(Subgroup, IsNullForOtherRanks) {
  expect_all_well(4, [](Collectives& group) {
    const bool is_member = group.rank() == 1 || group.rank() == 2;
    const auto named_by_all = group.subgroup({1, 2});
    require((named_by_all != nullptr) == is_member, "a group for its members");
    const auto named_by_members = group.subgroup(is_member ? std::vector{1, 2} : std::vector<int>());
    require((named_by_members != nullptr) == is_member, "a group for its members alone");
    if (is_member) require_sum(*named_by_members, group.rank(), 3);
    require(group.subgroup({}) == nullptr, "a group of nobody");
    require_sum(group, group.rank(), 6);
  });
}

TEST_P(Subgroup, CarriesAMessageFromARankToAnother) {
  expect_all_well(4, [](Collectives& group) {
    const int first = group.rank() / 2 * 2;
    const auto pair = group.subgroup({first, first + 1});  // all ranks call it
    at::Tensor tensor = at::full({100'000}, group.rank());
    pair->broadcast(tensor, 0);  // the first of the pair sends, the other receives
    require_equal(tensor, at::full({100'000}, first), "a message of known shape");
    const std::string text = broadcast(*pair, "from " + std::to_string(group.rank()), 1);
    require(text == "from " + std::to_string(first + 1), "a message of any length: " + text);
  });
}

TEST_P(Subgroup, HasSubgroupsWhoseErrorsNameTheRanksOfAll) {
  const auto errors = run_ranks(GetParam(), 4, [](Collectives& group) {
    const auto others = group.subgroup({3, 1, 2});
    if (!others) return;
    const auto pair = others->subgroup({2, 0});  // 2 and 3
    if (!pair) return;
    require(pair->rank() == (group.rank() == 2 ? 0 : 1), "rank " + std::to_string(pair->rank()));
    require_sum(*pair, group.rank(), 5);
    at::Tensor tensor = at::ones({3});
    if (group.rank() == 3) return pair->broadcast(tensor, 1);
    pair->all_reduce(tensor, ReduceOp::kSum)->wait();
  });
  const std::string text =
      "CollectiveMismatch: rank 2 called all_reduce #2 of float32[3] (sum), but rank 3 called broadcast #2 of "
      "float32[3] from rank 3";
  EXPECT_THAT(errors, ElementsAre("", "", text, text));
}

TEST_P(Subgroup, IsRefusedOnAllRanksThatNameOthersAndGoOn) {
  expect_all_well(4, [](Collectives& group) {
    const auto require_refused = [&](const std::vector<int>& members, const std::string& why) {
      const std::string error = error_of([&] { static_cast<void>(group.subgroup(members)); });
      require(error.starts_with("CollectiveMismatch: subgroup: " + why), error);
    };
    const bool is_last = group.rank() == 3;
    require_refused(is_last ? std::vector{3, 2} : std::vector{0, 1, 2, 3},
                    "rank 0 names ranks 0, 1, 2 and 3, but rank 3 names ranks 3 and 2: name the same ones, in the same "
                    "order, on every rank of the new group");
    require_refused(is_last ? std::vector{1, 0} : std::vector{0, 1}, "rank 3 names ranks 1 and 0, but rank 1 names");
    require_refused(is_last ? std::vector<int>() : std::vector{0, 3},
                    "rank 0 names ranks 0 and 3, but rank 3 names no");
    require_sum(group, group.rank(), 6);
  });
}

TEST_P(Subgroup, IsRefusedOnARankThatNamesNoRankOfTheGroup) {
  expect_all_well(2, [](Collectives& group) {
    const auto refusal_of = [&](const std::vector<int>& members) {
      return error_of([&] { static_cast<void>(group.subgroup(members)); });
    };
    require(refusal_of({0, 2}) == "invalid_argument: subgroup: there is no rank 2 in a group of 2", refusal_of({0, 2}));
    require(refusal_of({-1}) == "invalid_argument: subgroup: there is no rank -1 in a group of 2", refusal_of({-1}));
    require(refusal_of({1, 0, 1}) == "invalid_argument: subgroup: rank 1 is named twice", refusal_of({1, 0, 1}));
    require_sum(*group.subgroup({1, 0}), group.rank(), 1);
  });
}

TEST_P(Subgroup, NamesARankThatIsSilentAsAllDo) {
  SharedCounter timed_out;
  expect_all_well(
      3,
      [&](Collectives& group) {
        const auto pair = group.subgroup({1, 2});
        if (group.rank() == 2) return timed_out.wait_for(1);
        if (group.rank() == 0) return;
        const std::string error = error_of([&] { pair->barrier(); });
        timed_out.add();
        require(error == "CollectiveTimeout: barrier #1 did not finish within 6000 ms: rank 2 did not call it", error);
      },
      6s);
}

TEST_P(Subgroup, LosesARankThatLeavesAndNoOtherGroupDoes) {
  SharedCounter lost;
  const auto errors = run_ranks(GetParam(), 4, [&](Collectives& group) {
    const int first = group.rank() / 2 * 2;
    auto pair = group.subgroup({first, first + 1});
    pair->barrier();
    if (group.rank() == 3) pair.reset();
    const std::string error =
        group.rank() == 2 ? error_of([&] { pair->all_reduce(at::ones({8}), ReduceOp::kSum)->wait(); }) : "";
    if (group.rank() == 2) lost.add();
    lost.wait_for(1);
    if (first == 0) require_sum(*pair, group.rank(), 1);
    require_sum(group, group.rank(), 6);
    if (group.rank() == 2) throw std::runtime_error(error);
  });
  EXPECT_THAT(
      errors,
      ElementsAre("", "",
                  AllOf(StartsWith("error: PeerLost: rank 3 "), HasSubstr("left the group before all_reduce #2")), ""));
}

TEST_P(Subgroup, LeavesNothingBehind) {
  expect_all_well(3, [](Collectives& group) {
    const auto make_and_use = [&] {
      const auto pair = group.subgroup(group.rank() == 1 ? std::vector{1} : std::vector{2, 0});
      require_sum(*pair, group.rank(), group.rank() == 1 ? 1 : 2);
    };
    make_and_use();
    group.barrier();
    const std::size_t files = files_in("/proc/self/fd");
    const std::size_t threads = files_in("/proc/self/task");
    for (int i = 0; i < 30; ++i) make_and_use();
    group.barrier();
    require(GetParam() == "threads" || files_in("/proc/self/fd") == files,
            std::to_string(files_in("/proc/self/fd")) + " open files instead of " + std::to_string(files));
    require(GetParam() == "threads" || files_in("/proc/self/task") == threads,
            std::to_string(files_in("/proc/self/task")) + " threads instead of " + std::to_string(threads));
  });
}

std::string name_of_backend(const ::testing::TestParamInfo<std::string>& backend) {
  return backend.param == "shm+gloo" ? "ShmAndGloo" : backend.param;
}

INSTANTIATE_TEST_SUITE_P(All, Subgroup, ::testing::Values("threads", "shm", "gloo", "shm+gloo"), name_of_backend);

class SubgroupOfProcesses : public Subgroup {};

TEST_P(SubgroupOfProcesses, LosesARankThatIsKilled) {
  const auto errors = run_ranks(GetParam(), 4, [](Collectives& group) {
    const auto others = group.subgroup(group.rank() == 0 ? std::vector{0} : std::vector{1, 2, 3});
    others->barrier();
    if (group.rank() == 2) ::raise(SIGKILL);
    require_sum(*others, group.rank(), group.rank() == 0 ? 0 : 6);
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[2], "killed by signal 9");
  for (const std::size_t rank : {1U, 3U}) {
    EXPECT_THAT(errors[rank], AllOf(StartsWith("PeerLost: rank 2 (pid "), HasSubstr("ended during all_reduce #2")));
  }
}

TEST_P(SubgroupOfProcesses, OutlivesItsGroup) {
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    GroupOptions options = group_of(rank, 3, "outlived-" + GetParam());
    if (GetParam() == "shm+gloo") options.host = rank < 2 ? "most" : "last";
    ranks.emplace_back([options] {
      auto group = make_collectives(GetParam(), options);
      const auto same = group->subgroup({0, 1, 2});
      group.reset();
      require_sum(*same, options.rank, 3);
      require_sum(*same->subgroup({2, 1, 0}), options.rank, 3);
    });
  }
  for (RankProcess& rank : ranks) EXPECT_EQ(rank.result(), "");
}

INSTANTIATE_TEST_SUITE_P(All, SubgroupOfProcesses, ::testing::Values("shm", "gloo", "shm+gloo"), name_of_backend);

TEST(SubgroupOfHosts, HasTheBackendThatFitsItsHosts) {
  const auto errors = run_ranks("shm+gloo", 4, [](Collectives& group) {  // rank 3 is on another host
    const auto require_name = [&](const std::vector<int>& ranks, const std::string& name) {
      const auto some = group.subgroup(ranks);
      if (!some) return;
      require(some->name() == name, some->name() + " instead of " + name);
      some->barrier();
    };
    require_name({0, 1, 2}, "shm");
    require_name({1, 3}, "gloo");
    require_name({3, 0, 1}, "shm+gloo");
    require_name({2}, "single");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SubgroupAlone, IsAlone) {
  const auto errors = run_ranks("single", 1, [](Collectives& group) {
    require_sum(*group.subgroup({0})->subgroup({0}), 7, 7);
    require(group.subgroup({}) == nullptr, "a group of nobody");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

}  // namespace
}  // namespace lrun::detail::testing
