// Ranks with different numbers of batches train as one process that has, in each step, the batches that are left.
#include "lrun/join.h"

#include <lrun/all_gather_with_grad.h>
#include <lrun/clip_grad_norm.h>
#include <lrun/error.h>
#include <lrun/sync_batch_norm.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <memory>

#include "runtime/support/small_training.h"

namespace lrun::detail {
namespace {

using test::SmallNet;

constexpr std::int64_t kSize = 4;  // samples of a batch

struct Batch {
  at::Tensor input, target;
};

Batch batch_of(int rank, int step) {
  const double shift = 0.01 * step + 0.1 * rank;
  return {test::wave(0.7 + shift, 8).narrow(0, 0, kSize), test::wave(1.3 + shift, 3).narrow(0, 0, kSize)};
}

at::Tensor loss_of(SmallNet& net, const Batch& batch) { return at::mse_loss(net.forward(batch.input), batch.target); }

/// The batches of a step of all ranks that are not done, together.
Batch whole_batch(const std::vector<int>& batches, int step) {
  std::vector<at::Tensor> inputs, targets;
  for (std::size_t rank = 0; rank < batches.size(); ++rank) {
    if (step >= batches[rank]) continue;
    const auto batch = batch_of(static_cast<int>(rank), step);
    inputs.push_back(batch.input), targets.push_back(batch.target);
  }
  return {at::cat(inputs), at::cat(targets)};
}

struct Epochs {
  std::vector<int> batches;  // of each rank
  int count = 2;
};

void train_alone(SmallNet& net, const Epochs& epochs) {
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < epochs.count * std::ranges::max(epochs.batches); ++step) {
    optimizer.zero_grad();
    loss_of(net, whole_batch(epochs.batches, step % std::ranges::max(epochs.batches))).backward();
    clip_grad_norm(net.parameters(), 0.1);
    optimizer.step();
  }
}

void train_rank(Session& session, const std::shared_ptr<SmallNet>& net, const Epochs& epochs) {
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::Adam>(model, 0.01);
  Join join(session, model);
  const auto update = [&] {
    clip_grad_norm(model.parameters(), 0.1);
    optimizer.step();
  };
  for (int epoch = 0; epoch < epochs.count; ++epoch) {
    for (int step = 0; step < epochs.batches[static_cast<std::size_t>(session.rank())]; ++step) {
      const auto batch = batch_of(session.rank(), step);
      join.begin_step();
      optimizer.zero_grad();
      model.train_step(batch.input, [&](SmallNet& part, const at::Tensor&) { return loss_of(part, batch); });
      update();
    }
    while (join.others_go_on()) {
      optimizer.zero_grad();
      join.train_step_without_batch();
      update();
    }
  }
}

TEST(Join, TrainsAsOneProcessOnWhatIsLeft) {
  at::set_num_threads(1);
  for (const Epochs& epochs : {Epochs{{5, 3, 1}}, Epochs{{1, 4}}, Epochs{{0, 2, 2, 3}}, Epochs{{2, 2}}, Epochs{{3}}}) {
    SmallNet alone;
    train_alone(alone, epochs);
    const auto ranks = static_cast<int>(epochs.batches.size());
    for (const std::string strategy : {"ddp", "ddp_sharded"}) {
      std::vector<std::shared_ptr<SmallNet>> nets;
      for (int rank = 0; rank < ranks; ++rank) nets.push_back(std::make_shared<SmallNet>());
      test::run_strategy(strategy, ranks, [&](Session& session) {
        train_rank(session, nets[static_cast<std::size_t>(session.rank())], epochs);
      });
      for (const auto& net : nets) {
        test::expect_equal(*net, alone, 1e-6);
        test::expect_equal(*net, *nets[0], 0);
      }
    }
  }
}

struct Counting : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    count += 1;
    return (input * weight).sum();
  }
  at::Tensor weight = register_parameter("weight", at::ones({2}));
  at::Tensor count = register_buffer("count", at::zeros({1}));
};

TEST(Join, LeavesTheNewestBuffersOnAllRanks) {
  test::run_strategy("ddp", 3, [](Session& session) {
    auto net = std::make_shared<Counting>();
    auto model = session.wrap(net);
    const auto train_epoch = [&](int steps) {
      Join join(session, model);
      net->count.zero_();
      for (int step = 0; step < steps; ++step) {
        join.begin_step();
        model.train_step(at::ones({2}), [](Counting& part, const at::Tensor& input) { return part.forward(input); });
      }
      while (join.others_go_on()) join.train_step_without_batch();
      return net->count.item<float>();
    };
    EXPECT_EQ(train_epoch(2 + 2 * session.rank()), 6) << "the longest rank took six steps";
    EXPECT_EQ(train_epoch(6 - 2 * session.rank()), 6) << "rank 0 is the longest";
  });
}

TEST(Join, LeavesTheAverageOverAllRanksBehindWhenItEndsEarly) {
  test::run_strategy("ddp", 2, [](Session& session) {
    auto net = std::make_shared<Counting>();
    auto model = session.wrap(net);
    const auto step = [](Counting& part, const at::Tensor& input) { return part.forward(input); };
    {
      Join join(session, model);
      if (session.rank() == 0) {
        join.begin_step();
        model.train_step(at::ones({2}), step);
      } else if (join.others_go_on()) {
        join.train_step_without_batch();
      }
    }
    net->zero_grad();
    model.train_step(at::full({2}, session.rank() + 1.0), step);
    EXPECT_TRUE(net->weight.grad().eq(1.5).all().item<bool>()) << net->weight.grad();
  });
}

TEST(Join, FailsOnAllRanksIfTheLossGathersAndARankHasNoBatch) {
  const auto train = [](Session& session) {
    auto model = session.wrap(std::make_shared<SmallNet>());
    Join join(session, model);
    const Batch batch = batch_of(session.rank(), 0);
    const auto step = [&] {
      join.begin_step();
      model.train_step(batch.input, [&](SmallNet& net, const at::Tensor& input) {
        return all_gather_with_grad(session.collectives(), net.forward(input)).square().mean();
      });
    };
    step();  // all have a batch
    try {
      if (session.rank() == 0) step();
      if (session.rank() != 0 && join.others_go_on()) join.train_step_without_batch();
      ADD_FAILURE() << "no error";
    } catch (const CollectiveMismatch&) {
    }
  };
  test::run_strategy("ddp", 2, train);
}

TEST(Join, RefusesSyncBatchNorm) {
  test::run_strategy("ddp", 2, [](Session& session) {
    auto model = session.wrap(nn::SyncBatchNorm(3));
    EXPECT_THROW(Join(session, model), Unsupported);
  });
}

}  // namespace
}  // namespace lrun::detail
