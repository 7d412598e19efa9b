// Batch normalisation over the samples of all ranks is that of one process over the whole batch.
#include "lrun/sync_batch_norm.h"

#include <gtest/gtest.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/error.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/support/small_training.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

constexpr std::int64_t kChannels = 5;

/// Convolution, normalisation, convolution; `Norm` is a module of torch or ours.
template <class Norm>
struct NormedNet : torch::nn::Module {
  explicit NormedNet(const torch::nn::BatchNormOptions& options) : norm(options) {
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, kChannels, 3)));
    register_module("norm", norm);
    last = register_module("last", torch::nn::Conv2d(torch::nn::Conv2dOptions(kChannels, 1, 2)));
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) { return last(at::tanh(norm(first(input) * 3 + 7))); }

  torch::nn::Conv2d first{nullptr}, last{nullptr};
  Norm norm;
};
using SyncNet = NormedNet<lrun::nn::SyncBatchNorm>;
using WholeNet = NormedNet<torch::nn::BatchNorm2d>;

template <class Tensors>
void copy_all(const Tensors& from, const Tensors& to) {
  const at::NoGradGuard no_grad;
  for (const auto& item : from) to[item.key()].copy_(item.value());
}

template <class Tensors>
void expect_near(const Tensors& actual, const Tensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& item : expected) {
    const at::Tensor& other = actual[item.key()];
    EXPECT_EQ(other.scalar_type(), item.value().scalar_type());
    const double size = item.value().abs().max().template item<double>();
    EXPECT_LE((other - item.value()).abs().max().template item<double>(), 1e-6 * size) << item.key();
  }
}

void train(const at::Tensor& output, torch::optim::SGD& optimizer, double divisor) {
  optimizer.zero_grad();
  (output.square().sum() / divisor).backward();
  optimizer.step();
}

/// Ten steps over batches of sum(shares) samples, of which each rank has its share.
void expect_equal_training(const std::vector<std::int64_t>& shares, const torch::nn::BatchNormOptions& options) {
  at::set_num_threads(1);
  torch::manual_seed(3);
  const auto whole_batch = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  const auto batches =
      at::randn({10, whole_batch, 2, 6, 6}, at::kDouble) + at::arange(10, at::kDouble).view({10, 1, 1, 1, 1});
  WholeNet whole(options);
  std::vector<std::shared_ptr<SyncNet>> nets;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) nets.push_back(std::make_shared<SyncNet>(options));
  copy_all(whole.named_parameters(), nets[0]->named_parameters());
  const auto optimizer_of = [](const torch::nn::Module& net) {
    return torch::optim::SGD(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  };
  auto optimizer = optimizer_of(whole);
  for (std::int64_t step = 0; step < 10; ++step) {
    train(whole.forward(batches[step]), optimizer, static_cast<double>(whole_batch));
  }
  const auto ranks = static_cast<int>(shares.size());
  test::run_ranks(ranks, [&](int rank, Collectives& collectives) {
    const auto& net = nets[static_cast<std::size_t>(rank)];
    DistributedDataParallel<SyncNet> ddp(net, collectives);
    auto own_optimizer = optimizer_of(*net);
    const auto begin = std::accumulate(shares.begin(), shares.begin() + rank, std::int64_t{0});
    for (std::int64_t step = 0; step < 10; ++step) {
      const auto part = batches[step].narrow(0, begin, shares[static_cast<std::size_t>(rank)]);
      // The average over ranks of sum · ranks / whole is the mean over the whole batch.
      train(ddp.forward(part), own_optimizer, static_cast<double>(whole_batch) / ranks);
    }
  });
  whole.eval();
  const auto expected = whole.forward(batches[0]);
  for (const auto& net : nets) {
    expect_near(net->named_parameters(), whole.named_parameters());
    expect_near(net->named_buffers(), whole.named_buffers());
    net->eval();
    EXPECT_TRUE(net->forward(batches[0]).allclose(expected, 1e-6, 1e-9));
  }
}

torch::nn::BatchNormOptions plain() { return torch::nn::BatchNormOptions(kChannels); }

TEST(SyncBatchNorm, EqualsTheWholeBatchOnTwoThreeAndFourRanks) {
  expect_equal_training({6, 6}, plain());
  expect_equal_training({4, 4, 4}, plain());
  expect_equal_training({3, 3, 3, 3}, plain());
}

TEST(SyncBatchNorm, EqualsTheWholeBatchWhenRanksHaveDifferentShares) { expect_equal_training({7, 1, 4}, plain()); }

TEST(SyncBatchNorm, HasTheOptionsOfBatchNorm) {
  expect_equal_training({4, 2}, plain().affine(false));
  expect_equal_training({4, 2}, plain().momentum(std::nullopt).eps(0.1));
}

TEST(SyncBatchNorm, TakesPartWithoutSamples) {
  const auto batch = at::randn({6, kChannels, 3}, at::kDouble);
  torch::nn::BatchNorm1d whole(plain());
  whole->to(at::kDouble);
  const auto expected = whole(batch);
  test::run_ranks(3, [&](int rank, Collectives& collectives) {
    lrun::nn::SyncBatchNorm norm(plain());
    norm->to(at::kDouble);
    norm->connect(collectives);
    const std::int64_t begin = rank == 2 ? 2 : rank == 0 ? 0 : 2;
    const std::int64_t size = rank == 0 ? 2 : rank == 1 ? 0 : 4;
    const auto part = batch.narrow(0, begin, size).clone().set_requires_grad(true);
    const auto output = norm(part);
    EXPECT_TRUE(output.allclose(expected.narrow(0, begin, size), 1e-6, 1e-9)) << rank;
    output.square().sum().backward();
    EXPECT_EQ(part.grad().sizes(), part.sizes());
    EXPECT_TRUE(norm->running_var.allclose(whole->running_var, 1e-6, 1e-9));
  });
}

TEST(SyncBatchNorm, AloneAndInEvaluationIsBatchNorm) {
  const auto batch = at::randn({6, kChannels}) * 4 + 2;
  torch::nn::BatchNorm1d theirs(plain());
  lrun::nn::SyncBatchNorm ours(plain());
  EXPECT_TRUE(ours(batch).equal(theirs(batch)));
  theirs->eval(), ours->eval();
  EXPECT_TRUE(ours(batch).equal(theirs(batch)));
  std::ostringstream text;
  text << ours;
  EXPECT_EQ(text.str(), "lrun::nn::SyncBatchNorm(5, eps=1e-05)");
}

TEST(SyncBatchNorm, ComputesHalfPrecisionInFloat) {
  const auto batch = at::randn({8, kChannels, 20}) * 2 + 100;
  torch::nn::BatchNorm1d whole(plain());
  const auto expected = whole(batch.to(at::kBFloat16).to(at::kFloat));
  test::run_ranks(2, [&](int rank, Collectives& collectives) {
    lrun::nn::SyncBatchNorm norm(plain());
    norm->connect(collectives);
    const auto output = norm(batch.narrow(0, rank * 4, 4).to(at::kBFloat16));
    EXPECT_EQ(output.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(output.to(at::kFloat).allclose(expected.narrow(0, rank * 4, 4), 0.01, 0.01));
  });
}

TEST(SyncBatchNorm, RefusesOtherShapesAndTooFewValues) {
  EXPECT_THROW(lrun::nn::SyncBatchNorm(3)(at::zeros({3})), std::invalid_argument);
  EXPECT_THROW(lrun::nn::SyncBatchNorm(3)(at::zeros({2, 4})), std::invalid_argument);
  EXPECT_THROW(lrun::nn::SyncBatchNorm(3)(at::zeros({2, 3}, at::kLong)), std::invalid_argument);
  test::run_ranks(2, [](int rank, Collectives& collectives) {
    lrun::nn::SyncBatchNorm norm(3);
    norm->connect(collectives);
    EXPECT_THROW(norm(at::zeros({rank, 3})), std::invalid_argument) << "one value a feature over both ranks";
    norm(at::zeros({1, 3}));
  });
}

TEST(SyncBatchNorm, OutlivesTheRanks) {
  lrun::nn::SyncBatchNorm norm(plain());
  test::run_strategy("ddp", 2, [&](Session& session) {
    if (session.rank() == 0) {
      auto model = session.wrap(norm);
    } else {
      auto model = session.wrap(lrun::nn::SyncBatchNorm(plain()));
    }
  });
  torch::nn::BatchNorm1d theirs(plain());
  const auto batch = at::randn({6, kChannels});
  EXPECT_TRUE(norm(batch).equal(theirs(batch)));
}

TEST(SyncBatchNorm, RefusesADoubleBackwardAcrossRanks) {
  test::run_ranks(2, [](int, Collectives& collectives) {
    lrun::nn::SyncBatchNorm norm(kChannels);
    norm->connect(collectives);
    const at::Tensor loss = norm(at::randn({4, kChannels})).pow(3).sum();
    try {
      loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true);
      ADD_FAILURE() << "accepted";
    } catch (const Unsupported& error) {
      EXPECT_STREQ(
          error.what(),
          "SyncBatchNorm: double backward across ranks is not supported: call backward() without create_graph");
    }
  });
}

TEST(ConvertBatchNorm, KeepsOptionsParametersAndStatistics) {
  torch::nn::BatchNorm2d theirs(plain().eps(0.5).momentum(0.25));
  theirs->to(at::kDouble);
  theirs(at::randn({4, kChannels, 2, 2}, at::kDouble));
  const auto ours = lrun::nn::convert_batch_norm(theirs);
  EXPECT_EQ(ours->options.eps(), 0.5);
  EXPECT_EQ(ours->options.momentum(), 0.25);
  expect_near(ours->named_parameters(), theirs->named_parameters());
  expect_near(ours->named_buffers(), theirs->named_buffers());
  EXPECT_TRUE(ours->weight.requires_grad());
  EXPECT_FALSE(ours->weight.is_alias_of(theirs->weight));
}

TEST(ConvertBatchNorm, FindsThemInASequential) {
  torch::nn::Sequential theirs(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, kChannels, 1)),
                               torch::nn::BatchNorm2d(kChannels), torch::nn::ReLU());
  auto ours = lrun::nn::convert_batch_norms(theirs);
  EXPECT_EQ(ours->size(), 3U);
  EXPECT_NE(dynamic_cast<lrun::nn::SyncBatchNormImpl*>(ours->ptr(1).get()), nullptr);
  EXPECT_EQ(ours->ptr(0), theirs->ptr(0)) << "others are the same modules";
  const auto batch = at::randn({4, 2, 3, 3});
  EXPECT_TRUE(ours->forward(batch).equal(theirs->forward(batch)));
}

/// Its sums would meet those of the training thread in another order than on other ranks.
TEST(SyncBatchNorm, RefusesAnotherThreadThanTheOneThatWrappedIt) {
  test::run_ranks(2, [](int, Collectives& collectives) {
    lrun::nn::SyncBatchNorm norm(kChannels);
    const DistributedDataParallel<lrun::nn::SyncBatchNormImpl> ddp(norm.ptr(), collectives);
    std::string refusal;
    std::thread([&] {
      try {
        (void)norm(at::ones({4, kChannels}));
      } catch (const Unsupported& error) {
        refusal = error.what();
      }
    }).join();
    EXPECT_EQ(refusal, "SyncBatchNorm is called in another thread than wrapped it: under dp and ddp2 use BatchNorm");
    EXPECT_NO_THROW((void)norm(at::ones({4, kChannels}))) << "the group is as it was";
  });
}

}  // namespace
}  // namespace lrun::detail
