#include "lrun/clip_grad_norm.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "runtime/support/parameters.h"
#include "runtime/support/small_training.h"

namespace lrun::detail {
namespace {

using test::SmallNet;

constexpr double kMaxNorm = 0.05;  // below what the gradients have

/// Ten clipped steps; what each rank's norms were.
std::vector<std::vector<double>> train(const std::string& strategy, int world_size,
                                       const std::vector<std::shared_ptr<SmallNet>>& nets) {
  std::vector<std::vector<double>> norms(static_cast<std::size_t>(world_size));
  test::run_strategy(strategy, world_size, [&](Session& session) {
    const auto rank = static_cast<std::size_t>(session.rank());
    auto model = session.wrap(nets[rank]);
    auto optimizer = session.optimizer<torch::optim::Adam>(model, 0.01);
    for (int step = 0; step < 10; ++step) {
      optimizer.zero_grad();
      test::train_step(model, step, session);
      norms[rank].push_back(clip_grad_norm(model.parameters(), kMaxNorm));
      optimizer.step();
    }
  });
  return norms;
}

std::vector<std::shared_ptr<SmallNet>> make_nets(int world_size) {
  std::vector<std::shared_ptr<SmallNet>> nets;
  for (int rank = 0; rank < world_size; ++rank) nets.push_back(std::make_shared<SmallNet>());
  return nets;
}

TEST(ClipGradNorm, IsThatOfOneProcessUnderEveryStrategy) {
  at::set_num_threads(1);
  const auto alone = make_nets(1);
  const auto expected = train("ddp", 1, alone)[0];
  EXPECT_GT(expected[0], kMaxNorm) << "there is nothing to clip";
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    for (const int world_size : {2, 3, 4}) {
      const auto nets = make_nets(world_size);
      const auto norms = train(strategy, world_size, nets);
      for (const auto& of_rank : norms) {
        EXPECT_EQ(of_rank, norms[0]) << "ranks scale differently";
        ASSERT_EQ(of_rank.size(), expected.size());
        for (std::size_t step = 0; step < expected.size(); ++step) {
          EXPECT_NEAR(of_rank[step], expected[step], 1e-6 * expected[step]);
        }
      }
      for (const auto& net : nets) test::expect_equal(*net, *alone[0], 1e-6);
    }
  }
}

std::vector<at::Tensor> with_gradients(const std::vector<double>& values) {
  std::vector<at::Tensor> parameters;
  for (const double value : values) {
    parameters.push_back(test::parameter({2, 3}, at::kDouble));
    parameters.back().mutable_grad() = at::arange(6, at::kDouble).view({2, 3}) * value;
  }
  parameters.push_back(test::parameter({4}));  // without one
  return parameters;
}

TEST(ClipGradNorm, DoesWhatTorchDoes) {
  for (const double type : {1.0, 2.0, 3.5, std::numeric_limits<double>::infinity()}) {
    for (const double max_norm : {0.5, 1000.0}) {
      const auto ours = with_gradients({1, -2, 0.25});
      const auto theirs = with_gradients({1, -2, 0.25});
      EXPECT_NEAR(clip_grad_norm(ours, max_norm, type), torch::nn::utils::clip_grad_norm_(theirs, max_norm, type),
                  1e-12);
      for (std::size_t index = 0; index < 3; ++index) {
        EXPECT_TRUE(ours[index].grad().allclose(theirs[index].grad(), 1e-12, 0)) << type << " " << max_norm;
      }
    }
  }
}

TEST(ClipGradNorm, CountsTiedParametersOnce) {
  const auto once = with_gradients({1, -2});
  auto twice = with_gradients({1, -2});
  twice.push_back(twice.front());
  EXPECT_EQ(clip_grad_norm(twice, 0.5), clip_grad_norm(once, 0.5));
  EXPECT_TRUE(twice.front().grad().equal(once.front().grad()));
}

TEST(ClipGradNorm, LeavesGradientsThatAreNotFinite) {
  const auto parameters = with_gradients({1, std::numeric_limits<double>::infinity()});
  EXPECT_FALSE(std::isfinite(clip_grad_norm(parameters, 1)));
  EXPECT_EQ(parameters[0].grad()[1][2].item<double>(), 5);
}

TEST(ClipGradNorm, IsZeroWithoutGradients) { EXPECT_EQ(clip_grad_norm({test::parameter({3})}, 1), 0); }

TEST(ClipGradNorm, PassesGradientsWithoutElementsBy) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<at::Tensor> parameters = {test::parameter({0, 3}, at::kDouble), test::parameter({5, 2}, at::kDouble)};
  parameters[0].mutable_grad() = at::empty({0, 3}, at::kDouble);
  parameters[1].mutable_grad() = at::sparse_coo_tensor({5, 2}, at::kDouble);  // of a batch without words
  for (const double type : {1.0, 2.0, infinity}) EXPECT_EQ(clip_grad_norm(parameters, 1, type), 0) << type;
  parameters.push_back(with_gradients({1}).front());
  EXPECT_EQ(clip_grad_norm(parameters, 1, infinity), 5);
  EXPECT_NEAR(parameters.back().grad().abs().max().item<double>(), 1, 1e-5);
}

TEST(ClipGradNorm, RefusesWhatIsNoNorm) {
  EXPECT_THROW(clip_grad_norm({}, -1), std::invalid_argument);
  EXPECT_THROW(clip_grad_norm({}, std::nan("")), std::invalid_argument);
  EXPECT_THROW(clip_grad_norm({}, 1, 0), std::invalid_argument);
}

}  // namespace
}  // namespace lrun::detail
