// A child that a rank forks has a copy of the rank's group: it must harm neither the rank nor the others.

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/registry.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;

void require_foreign(const std::string& call, const std::function<void()>& function) {
  const std::string error = error_of(function);
  require(error.starts_with("error: the ") && error.find("which was forked from it") != std::string::npos,
          call + ": '" + error + "'");
}

std::vector<std::string> run_two(const std::string& name, const std::function<void(const GroupOptions&)>& main) {
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&main, options = group_of(rank, 2, name)] { main(options); });
  std::vector<std::string> errors;
  for (RankProcess& rank : ranks) errors.push_back(rank.result());
  return errors;
}

class ForkedChild : public ::testing::TestWithParam<std::string> {};

/// Sums ones over both ranks.
void use(Collectives& group, at::Tensor tensor) {
  tensor.fill_(1);
  group.all_reduce(tensor, ReduceOp::kSum)->wait();
  require_equal(tensor, at::full(tensor.sizes(), 2, at::kFloat), "the sum");
}

TEST_P(ForkedChild, IsRefusedEveryCall) {
  EXPECT_THAT(run_two("fork-calls-" + GetParam(),
                      [](const GroupOptions& options) {
                        const auto group = make_collectives(GetParam(), options);
                        const at::Tensor tensor = at::full({2, 4}, 1, at::kFloat);
                        use(*group, tensor);
                        RankProcess child([&] {
                          require_foreign("barrier", [&] { group->barrier(); });
                          require_foreign("broadcast", [&] { group->broadcast(tensor, 0); });
                          require_foreign("all_reduce", [&] { group->all_reduce(tensor, ReduceOp::kSum)->wait(); });
                          require_foreign("all_gather", [&] { group->all_gather(tensor, tensor[0]); });
                          require_foreign("reduce_scatter",
                                          [&] { group->reduce_scatter(tensor[0], tensor, ReduceOp::kSum); });
                          require_foreign("allocate_bucket", [&] { group->allocate_bucket(1, at::kFloat); });
                          require_foreign("abort", [&] { group->abort("the child's"); });
                        });
                        require(child.result().empty(), "a call of the child was not refused");
                        use(*group, tensor);
                      }),
              Each(std::string()));
}

TEST_P(ForkedChild, IsRefusedToWaitForTheWorkOfItsParent) {
  SharedCounter refused;
  EXPECT_THAT(run_two("fork-work-" + GetParam(),
                      [&](const GroupOptions& options) {
                        const auto group = make_collectives(GetParam(), options);
                        const at::Tensor tensor = at::full({100'000}, 1, at::kFloat);
                        group->barrier();
                        if (options.rank == 0) {
                          const auto work = group->all_reduce(tensor, ReduceOp::kSum);
                          RankProcess child([&] { require_foreign("wait", [&] { work->wait(); }); });
                          const std::string error = child.result();
                          refused.add();
                          require(error.empty(), error);
                          work->wait();
                        } else {
                          refused.wait_for(1);  // until then the work is in flight
                          group->all_reduce(tensor, ReduceOp::kSum)->wait();
                        }
                        require_equal(tensor, at::full({100'000}, 2, at::kFloat), "the sum");
                      }),
              Each(std::string()));
}

// With an idle thread of the queue, which the child does not have.
TEST_P(ForkedChild, DropsItsCopiesOfAGroupAndItsBucketsWithoutTheOthersNotice) {
  EXPECT_THAT(run_two("fork-drops-" + GetParam(),
                      [](const GroupOptions& options) {
                        auto group = make_collectives(GetParam(), options);
                        at::Tensor bucket = group->allocate_bucket(100'000, at::kFloat);
                        use(*group, bucket);
                        RankProcess child([&] {
                          bucket.reset();
                          group.reset();
                        });
                        const std::string error = child.result();
                        require(error.empty(), error);
                        require_equal(bucket, at::full({100'000}, 2, at::kFloat), "the bucket after the child");
                        use(*group, bucket);
                        group->barrier();
                      }),
              Each(std::string()));
}

INSTANTIATE_TEST_SUITE_P(Of, ForkedChild, ::testing::Values("shm", "gloo", "shm+gloo"),
                         [](const ::testing::TestParamInfo<std::string>& backend) {
                           return backend.param == "shm+gloo" ? std::string("shm_and_gloo") : backend.param;
                         });

}  // namespace
}  // namespace lrun::detail::testing
