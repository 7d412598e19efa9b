// A loss that compares the samples of all ranks has the gradients of one process on the whole batch.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/all_gather_with_grad.h>
#include <lrun/session.h>
#include <torch/utils.h>

#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/support/backend_ranks.h"
#include "runtime/support/small_training.h"

namespace lrun::detail {
namespace {

/// Each sample has to find itself among all others.
at::Tensor loss_among_all(const at::Tensor& own, const at::Tensor& all, std::int64_t first) {
  const at::Tensor similarity = own.mm(all.t());
  return at::nll_loss(at::log_softmax(similarity, 1), at::arange(first, first + own.size(0), at::kLong));
}

at::Tensor input_rows(std::int64_t begin, std::int64_t rows) { return test::wave(0.7, 8).narrow(0, begin, rows); }

/// Ranks may be threads, and share the generator that gives the parameters their values.
std::shared_ptr<test::SmallNet> net_of_rank() {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  return std::make_shared<test::SmallNet>();
}

std::vector<at::Tensor> gradients_alone() {
  const auto net = net_of_rank();
  const at::Tensor codes = net->forward(input_rows(0, test::kSmallBatch));
  loss_among_all(codes, codes, 0).backward();
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : net->parameters()) gradients.push_back(parameter.grad());
  return gradients;
}

void require_gradients(const torch::nn::Module& net, const std::vector<at::Tensor>& expected) {
  const auto parameters = net.parameters();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].defined()) continue;
    const double difference = (parameters[i].grad() - expected[i]).abs().max().item<double>();
    testing::require(difference <= 1e-12,
                     "gradient " + std::to_string(i) + " differs by " + std::to_string(difference));
  }
}

class AllGatherWithGrad : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  static void expect_all_well(const testing::RankBody& body) {
    const auto [backend, world_size] = GetParam();
    const auto errors = testing::run_ranks(backend, world_size, [&](Collectives& group) {
      at::set_num_threads(1);
      body(group);
    });
    for (std::size_t rank = 0; rank < errors.size(); ++rank) EXPECT_EQ(errors[rank], "") << "rank " << rank;
  }
};

/// \param all_rows  every rank computes the loss of all samples; else that of its own among all.
void train_and_compare(Collectives& group, bool all_rows) {
  auto net = net_of_rank();
  WrapOptions options;
  options.gradients = GradientSyncOptions{.bucket_bytes = 1024, .first_bucket_bytes = 512};
  Model<test::SmallNet> model(net, std::make_unique<ReplicatedModule>(net, group, options), at::kCPU);
  const std::int64_t part = test::kSmallBatch / group.world_size();
  const std::int64_t begin = group.rank() * part;
  for (int step = 0; step < 3; ++step) {  // buckets are made anew after the first
    net->zero_grad();
    model.train_step(
        input_rows(begin, part),
        [](test::SmallNet& replica, const at::Tensor& input) { return replica.forward(input); },
        [&](const at::Tensor& codes, const at::Tensor&) {
          const at::Tensor all = all_gather_with_grad(group, codes);
          return all_rows ? loss_among_all(all, all, 0) : loss_among_all(codes, all, begin);
        });
    require_gradients(*net, gradients_alone());
  }
}

TEST_P(AllGatherWithGrad, GivesTheGradientsOfOneProcessIfEveryRankHasTheWholeLoss) {
  expect_all_well([](Collectives& group) { train_and_compare(group, true); });
}

TEST_P(AllGatherWithGrad, GivesTheGradientsOfOneProcessIfEveryRankHasTheLossOfItsOwnSamples) {
  expect_all_well([](Collectives& group) { train_and_compare(group, false); });
}

TEST_P(AllGatherWithGrad, OrdersRowsByRankAndSumsTheirGradients) {
  expect_all_well([](Collectives& group) {
    for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
      const at::Tensor mine = at::full({2, 3}, group.rank(), dtype).t().requires_grad_();  // not contiguous
      const at::Tensor all = all_gather_with_grad(group, mine);
      testing::require(all.requires_grad(), "the result has a graph");
      const at::Tensor expected =
          at::arange(group.world_size(), dtype).repeat_interleave(3).view({-1, 1}).expand({-1, 2});
      testing::require_equal(all.detach(), expected, "rows");
      (all * (group.rank() + 1)).sum().backward();
      const int sum = group.world_size() * (group.world_size() + 1) / 2;
      testing::require_equal(mine.grad(), at::full({3, 2}, sum, dtype), "gradient");
      const at::NoGradGuard no_grad;
      testing::require(!all_gather_with_grad(group, mine.detach()).requires_grad(), "no graph without gradients");
    }
  });
}

TEST_P(AllGatherWithGrad, GivesATensorThatMayBeChangedInPlace) {
  expect_all_well([](Collectives& group) {
    const at::Tensor mine = at::full({2, 3}, group.rank() + 1, at::kDouble).requires_grad_();
    at::Tensor all = all_gather_with_grad(group, mine * 1);
    all.mul_(2).sum().backward();
    testing::require_equal(all.detach().narrow(0, 2 * group.rank(), 2),
                           at::full({2, 3}, 2 * (group.rank() + 1), at::kDouble), "rows");
    testing::require_equal(mine.grad(), at::full({2, 3}, 2 * group.world_size(), at::kDouble), "gradient");
  });
}

TEST_P(AllGatherWithGrad, RefusesADoubleBackwardAcrossRanks) {
  expect_all_well([](Collectives& group) {
    const at::Tensor mine = at::ones({2, 3}, at::kDouble).requires_grad_();
    const at::Tensor loss = all_gather_with_grad(group, mine).pow(3).sum();
    const auto error = testing::error_of([&] { loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true); });
    const std::string expected =
        "Unsupported: all_gather_with_grad: double backward across ranks is not supported: call backward() without "
        "create_graph";
    testing::require(error == (group.world_size() == 1 ? "" : expected), error);
  });
}

INSTANTIATE_TEST_SUITE_P(Alone, AllGatherWithGrad,
                         ::testing::Combine(::testing::Values("single"), ::testing::Values(1)), testing::name_of_group);
INSTANTIATE_TEST_SUITE_P(Groups, AllGatherWithGrad,
                         ::testing::Combine(::testing::Values("threads", "shm", "gloo", "shm+gloo"),
                                            ::testing::Values(2, 3)),
                         testing::name_of_group);

TEST(AllGatherWithGradArguments, RefusesATensorWithoutSamplesAndShapesThatDiffer) {
  const auto errors = testing::run_ranks("threads", 2, [](Collectives& group) {
    const auto error = testing::error_of([&] { static_cast<void>(all_gather_with_grad(group, at::ones({}))); });
    testing::require(error == "invalid_argument: all_gather_with_grad: the tensor has no dimension of samples", error);
    static_cast<void>(all_gather_with_grad(group, at::ones({2 + group.rank(), 3})));
  });
  for (const auto& error : errors) {
    EXPECT_THAT(error,
                ::testing::HasSubstr("CollectiveMismatch: rank 0 called all_gather #1 of float32[2, 3], but rank 1 "
                                     "called all_gather #1 of float32[3, 3]"));
  }
}

}  // namespace
}  // namespace lrun::detail
