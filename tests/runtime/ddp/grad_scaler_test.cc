#include "lrun/grad_scaler.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <gtest/gtest.h>
#include <lrun/clip_grad_norm.h>
#include <lrun/error.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/support/parameters.h"
#include "runtime/support/small_training.h"

namespace lrun::detail {
namespace {

using test::SmallNet;
using torch::optim::SGD;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A GradScaler of one process, and a parameter with its optimizer.
struct Alone {
  explicit Alone(const GradScalerOptions& options = {}) : scaler(*group.front(), options) {}

  /// One step with this gradient of the unscaled loss. \return whether it was taken.
  bool step(double gradient) {
    weight.mutable_grad() = at::full({3}, gradient * scaler.get_scale(), at::kFloat);
    const bool stepped = scaler.step(optimizer);
    scaler.update();
    return stepped;
  }

  std::vector<std::unique_ptr<Collectives>> group = make_thread_group(1);
  GradScaler scaler;
  at::Tensor weight = test::parameter({3}, at::kFloat);
  SGD optimizer{std::vector<at::Tensor>{weight}, torch::optim::SGDOptions(0.1)};
};

TEST(GradScaler, HasTheDefaultsOfTorch) {
  Alone alone;
  EXPECT_EQ(alone.scaler.get_scale(), 65536);
  EXPECT_FALSE(alone.step(kInfinity));
  EXPECT_EQ(alone.scaler.get_scale(), 32768);
  for (int step = 0; step < 1999; ++step) ASSERT_TRUE(alone.step(0));
  EXPECT_EQ(alone.scaler.get_scale(), 32768);
  alone.step(0);
  EXPECT_EQ(alone.scaler.get_scale(), 65536);
}

/// Torch.amp.GradScaler consists of these two operations.
TEST(GradScaler, DoesWhatTorchsOperationsDo) {
  const GradScalerOptions options{.init_scale = 1e3, .growth_factor = 3.7, .backoff_factor = 0.3, .growth_interval = 3};
  Alone alone(options);
  at::Tensor scale = at::full({}, options.init_scale, at::kFloat);
  at::Tensor growth_tracker = at::zeros({}, at::kInt);
  std::mt19937 random(7);
  for (int step = 0; step < 300; ++step) {
    const at::Tensor gradient = at::randn({3}) * scale;
    const unsigned kind = random() % 8;
    if (kind < 2) gradient[1] = kind == 0 ? kInfinity : std::nan("");
    alone.weight.mutable_grad() = gradient.clone();
    at::Tensor found_inf = at::zeros({}, at::kFloat);
    at::_amp_foreach_non_finite_check_and_unscale_({gradient}, found_inf,
                                                   scale.to(at::kDouble).reciprocal().to(at::kFloat));
    EXPECT_EQ(alone.scaler.step(alone.optimizer), found_inf.item<float>() == 0);
    EXPECT_TRUE(alone.weight.grad().allclose(gradient, 0, 0, /*equal_nan=*/true));
    alone.scaler.update();
    at::_amp_update_scale_(scale, growth_tracker, found_inf, options.growth_factor, options.backoff_factor,
                           options.growth_interval);
    ASSERT_EQ(alone.scaler.get_scale(), scale.item<float>()) << step;
  }
}

TEST(GradScaler, StaysWithinFloat32) {
  Alone alone({.init_scale = 3e38, .growth_interval = 1});
  alone.step(0);
  EXPECT_EQ(alone.scaler.get_scale(), double{3e38F});
}

TEST(GradScaler, ScalesALossOfFloat16BeyondItsRange) {
  Alone alone;
  const at::Tensor loss = at::ones({}, at::kHalf).requires_grad_();
  EXPECT_EQ(alone.scaler.scale(loss).item<double>(), 65536);
  EXPECT_TRUE(alone.scaler.scale(loss).requires_grad());
}

/// Multiplying by powers of two changes no bit of a result.
TEST(GradScaler, TrainsAsWithoutIt) {
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    for (const int world_size : {1, 2, 3}) {
      std::vector<std::shared_ptr<SmallNet>> nets(6);
      for (auto& net : nets) net = std::make_shared<SmallNet>();
      test::run_strategy(strategy, world_size, [&](Session& session) {
        const auto rank = static_cast<std::size_t>(session.rank());
        for (const bool enabled : {false, true}) {
          auto model = session.wrap(nets[2 * rank + (enabled ? 1 : 0)]);
          auto optimizer = session.optimizer<torch::optim::Adam>(model, 0.01);
          GradScaler scaler(session.collectives(), {.growth_interval = 2, .enabled = enabled});
          for (int step = 0; step < 6; ++step) {
            optimizer.zero_grad();
            test::train_step(model, step, session, [&](const at::Tensor& loss) { return scaler.scale(loss); });
            scaler.unscale(optimizer);
            clip_grad_norm(model.parameters(), 0.05);
            EXPECT_TRUE(scaler.step(optimizer));
            scaler.update();
          }
          EXPECT_EQ(scaler.get_scale(), enabled ? 8 * 65536 : 1);
        }
      });
      for (int rank = 0; rank < world_size; ++rank) {
        const auto index = static_cast<std::size_t>(2 * rank);
        test::expect_equal(*nets[index + 1], *nets[index], 0);
        test::expect_equal(*nets[index + 1], *nets[1], 0);
      }
    }
  }
}

TEST(GradScaler, SkipsAStepOnAllRanksWhereTheLossOfOneIsInfinite) {
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    test::run_strategy(strategy, 3, [&](Session& session) {
      auto model = session.wrap(std::make_shared<SmallNet>());
      const at::Tensor weight = model->last->weight;
      auto optimizer = session.optimizer<torch::optim::Adam>(model, 0.01);
      GradScaler scaler(session.collectives());
      for (int step = 0; step < 4; ++step) {
        const bool overflows = step == 2 && session.rank() == 1;
        const at::Tensor before = weight.detach().clone();
        optimizer.zero_grad();
        test::train_step(model, step, session,
                         [&](const at::Tensor& loss) { return scaler.scale(overflows ? loss * kInfinity : loss); });
        EXPECT_EQ(scaler.step(optimizer), step != 2) << strategy << " rank " << session.rank();
        scaler.update();
        EXPECT_EQ(weight.equal(before), step == 2) << strategy << " rank " << session.rank();
      }
      EXPECT_EQ(scaler.get_scale(), 32768);
    });
  }
}

TEST(GradScaler, SkipsAStepOnAllRanksWhereGradientsAreNotAveraged) {
  test::run_ranks(3, [](int rank, Collectives& collectives) {
    const at::Tensor weight = test::parameter({3}, at::kFloat);
    SGD optimizer(std::vector<at::Tensor>{weight}, torch::optim::SGDOptions(0.1));
    GradScaler scaler(collectives);
    weight.mutable_grad() = at::full({3}, rank == 2 ? std::nan("") : 1.0, at::kFloat);
    EXPECT_FALSE(scaler.step(optimizer));
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), 32768);
  });
}

TEST(GradScaler, NamesScalesThatDiffer) {
  const auto failures = test::run_ranks_and_catch(2, [](int rank, Collectives& collectives) {
    SGD optimizer(std::vector<at::Tensor>{test::parameter({3})}, torch::optim::SGDOptions(0.1));
    GradScaler scaler(collectives, {.init_scale = rank == 0 ? 8.0 : 4.0});
    scaler.step(optimizer);
  });
  for (const auto& failure : failures) EXPECT_THROW(std::rethrow_exception(failure), RankMismatch);
}

TEST(GradScaler, GoesOnFromItsState) {
  Alone before({.init_scale = 16, .growth_interval = 3});
  for (const double gradient : {0.0, kInfinity, 0.0, 0.0}) before.step(gradient);
  torch::serialize::OutputArchive saved;
  before.scaler.save(saved);
  std::stringstream bytes;
  saved.save_to(bytes);
  Alone after;
  torch::serialize::InputArchive loaded;
  loaded.load_from(bytes);
  after.scaler.load(loaded);
  EXPECT_EQ(after.scaler.get_scale(), 8);
  after.step(0);
  EXPECT_EQ(after.scaler.get_scale(), 16) << "the third step in a row that was not skipped";
}

TEST(GradScaler, RefusesAnArchiveWithoutItsState) {
  Alone disabled({.enabled = false});
  torch::serialize::OutputArchive saved;
  disabled.scaler.save(saved);
  std::stringstream bytes;
  saved.save_to(bytes);
  torch::serialize::InputArchive loaded;
  loaded.load_from(bytes);
  EXPECT_THROW(Alone().scaler.load(loaded), CheckpointError);
  disabled.scaler.load(loaded);
  EXPECT_EQ(disabled.scaler.get_scale(), 1);
}

TEST(GradScaler, RefusesCallsInAnotherOrder) {
  Alone alone;
  EXPECT_THROW(alone.scaler.update(), std::logic_error);
  alone.scaler.unscale(alone.optimizer);
  EXPECT_THROW(alone.scaler.unscale(alone.optimizer), std::logic_error);
  EXPECT_TRUE(alone.scaler.step(alone.optimizer)) << "without a gradient nothing is infinite";
  EXPECT_THROW(alone.scaler.step(alone.optimizer), std::logic_error);
  EXPECT_THROW(alone.scaler.unscale(alone.optimizer), std::logic_error);
  alone.scaler.update();
  EXPECT_TRUE(alone.scaler.step(alone.optimizer));
}

TEST(GradScaler, RefusesGradientsOfFloat16) {
  Alone alone;
  const at::Tensor half = test::parameter({3}, at::kHalf);
  half.mutable_grad() = at::ones({3}, at::kHalf);
  SGD optimizer(std::vector<at::Tensor>{half}, torch::optim::SGDOptions(0.1));
  EXPECT_THROW(alone.scaler.unscale(optimizer), std::invalid_argument);
}

TEST(GradScaler, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Alone({.init_scale = 0}), std::invalid_argument);
  EXPECT_THROW(Alone({.init_scale = 1e39}), std::invalid_argument);
  EXPECT_THROW(Alone({.growth_factor = 1}), std::invalid_argument);
  EXPECT_THROW(Alone({.backoff_factor = 1}), std::invalid_argument);
  EXPECT_THROW(Alone({.growth_interval = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace lrun::detail
