// dp, and ddp2 where nodes matter: the inputs of steps, the state of replicas, the resulting gradients.
#include <gtest/gtest.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/error.h>
#include <lrun/session.h>
#include <torch/nn/modules/embedding.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/support/dp_session.h"
#include "runtime/support/layout.h"

namespace lrun::detail {
namespace {

namespace nn = torch::nn;
using test::dp_session;
using test::expect_close;
using test::forward;
using test::make_batch;
using test::Net;
using test::NetImpl;
using test::run_layout;

void expect_gradients_of(nn::Module& net, nn::Module& alone) {
  for (const auto& item : alone.named_parameters()) {
    const auto& gradient = net.named_parameters()[item.key()].grad();
    if (!item.value().grad().defined()) {
      EXPECT_FALSE(gradient.defined()) << item.key();
    } else {
      expect_close(gradient, item.value().grad(), item.key());
    }
  }
}

Net copy_of(const Net& net) {
  Net copy;
  const at::NoGradGuard no_grad;
  for (const auto& item : net->named_parameters()) copy->named_parameters()[item.key()].copy_(item.value());
  return copy;
}

/// Couples all samples of the batch.
at::Tensor contrastive(const at::Tensor& outputs) {
  return at::log_softmax(at::mm(outputs, outputs.t()), 1).diagonal().neg().mean();
}

TEST(Dp, HasTheGradientsOfTheWholeBatchAlsoWhenItDoesNotDivide) {
  for (const int devices : {1, 2, 3, 4, 8}) {
    for (const std::int64_t samples : {1, 2, 7, 10}) {
      const auto session = dp_session(devices);
      Net net;
      Net alone = copy_of(net);
      const auto batch = make_batch(samples);
      const auto expected = contrastive(alone->forward(batch));
      expected.backward();
      auto model = session->wrap(net);
      int calls = 0;
      const auto loss = model.train_step(batch, forward, [&](const at::Tensor& outputs, const at::Tensor& whole) {
        ++calls;
        EXPECT_EQ(outputs.size(0), samples);
        EXPECT_TRUE(whole.equal(batch));
        return contrastive(outputs);
      });
      EXPECT_EQ(calls, 1);
      EXPECT_FALSE(loss.requires_grad());
      expect_close(loss, expected, "loss");
      expect_gradients_of(*net, *alone);
    }
  }
}

TEST(Dp, GivesEachDeviceItsPartInAThreadOfItsOwn) {
  const auto session = dp_session(3);
  auto model = session->wrap(Net());
  std::mutex mutex;
  std::condition_variable arrival;
  std::set<std::thread::id> threads;
  std::multiset<std::int64_t> sizes;
  std::set<const NetImpl*> replicas;
  for (int step = 0; step < 2; ++step) {
    sizes.clear();
    std::size_t together = 0;
    model.train_step(
        make_batch(7),
        [&](NetImpl& replica, const at::Tensor& part) {
          std::unique_lock lock(mutex);
          threads.insert(std::this_thread::get_id());
          replicas.insert(&replica);
          sizes.insert(part.size(0));
          ++together;
          arrival.notify_all();
          EXPECT_TRUE(arrival.wait_for(lock, test::kTestTimeout, [&] { return together == 3; })) << "one by one";
          return replica.forward(part);
        },
        [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
    EXPECT_EQ(sizes, (std::multiset<std::int64_t>{2, 2, 3}));
  }
  EXPECT_EQ(threads.size(), 3U) << "threads are kept";
  EXPECT_EQ(replicas.size(), 3U) << "replicas are kept";
  EXPECT_TRUE(replicas.contains(&*model)) << "the module itself is one of them";
}

struct Outputs {
  at::Tensor logits;
  std::vector<std::pair<at::Tensor, at::Tensor>> hidden;

  template <class Visitor>
  void for_each_tensor(Visitor&& visit) {
    visit(logits);
    for (auto& [first, second] : hidden) visit(first), visit(second);
  }
};

TEST(Dp, GathersContainersOfOutputs) {
  const auto session = dp_session(2);
  Net net;
  auto model = session->wrap(net);
  const auto batch = make_batch(5);
  const auto step = [](NetImpl& replica, const at::Tensor& part) {
    const auto hidden = replica.layer(part);
    return std::tuple(Outputs{at::tanh(hidden), {{hidden, part}}}, hidden.sum(), at::Tensor());
  };
  const auto [outputs, sums, nothing] = model.eval_step(batch, step);
  EXPECT_FALSE(outputs.logits.requires_grad());
  expect_close(outputs.logits, net->forward(batch), "logits");
  expect_close(outputs.hidden.at(0).first, net->layer(batch), "hidden");
  EXPECT_TRUE(outputs.hidden.at(0).second.equal(batch));
  EXPECT_EQ(sums.sizes(), at::IntArrayRef({2})) << "one a part";
  EXPECT_FALSE(nothing.defined());
  Net alone = copy_of(net);
  (at::tanh(alone->layer(batch)).sum() * 2 + alone->layer(batch).pow(2).sum()).backward();
  model.train_step(batch, step, [](const auto& gathered, const at::Tensor&) {
    const Outputs& trees = std::get<0>(gathered);
    return trees.logits.sum() * 2 + trees.hidden.at(0).first.pow(2).sum();
  });
  expect_gradients_of(*net, *alone);
}

TEST(Dp, WeighsLossesOfPartsByTheirSamples) {
  const auto session = dp_session(2);
  Net net;
  Net alone = copy_of(net);
  auto model = session->wrap(net);
  const auto step = [](NetImpl& replica, const at::Tensor& part) { return replica.forward(part).mean(); };
  const auto expected = step(*alone, make_batch(7));
  expected.backward();
  expect_close(model.train_step(make_batch(7), step), expected, "loss");
  expect_gradients_of(*net, *alone);
  EXPECT_THROW(model.train_step(make_batch(7), forward), std::invalid_argument) << "seven rows are no loss";
}

TEST(Dp, TrainsParametersThatStepEndUses) {
  for (const std::string strategy : {"dp", "ddp2"}) {
    Net start;
    const int nodes = strategy == "dp" ? 1 : 2;
    run_layout({strategy, 2, nodes}, [&](Session& session) {
      Net net = copy_of(start);
      Net alone = copy_of(start);
      auto model = session.wrap(net);
      const auto loss = [](const Net& owner, const at::Tensor& outputs) {
        return contrastive(outputs * owner->temperature);
      };
      loss(alone, alone->forward(make_batch(6))).backward();
      model.train_step(make_batch(6), forward,
                       [&](const at::Tensor& outputs, const at::Tensor&) { return loss(net, outputs); });
      expect_gradients_of(*net, *alone);
    });
  }
}

TEST(Dp, AccumulatesUnderNoSync) {
  for (const std::string strategy : {"dp", "ddp2"}) {
    Net start;
    run_layout({strategy, 2, strategy == "dp" ? 1 : 2}, [&](Session& session) {
      Net net = copy_of(start);
      Net alone = copy_of(start);
      auto model = session.wrap(net);
      const auto step_end = [](const at::Tensor& outputs, const at::Tensor&) { return contrastive(outputs); };
      for (std::int64_t micro = 0; micro < 3; ++micro) {
        // Nodes have different batches: the average over nodes is that over both.
        for (int node = 0; node < session.world_size(); ++node) {
          (contrastive(alone->forward(make_batch(5 + micro + node))) / session.world_size()).backward();
        }
        const auto mine = make_batch(5 + micro + session.rank());
        if (micro < 2) {
          const auto guard = model.no_sync();
          model.train_step(mine, forward, step_end);
        } else {
          model.train_step(mine, forward, step_end);
        }
      }
      expect_gradients_of(*net, *alone);
    });
  }
}

TEST(Dp, LeavesSparseGradientsSparse) {
  const auto session = dp_session(2);
  const auto net = std::make_shared<nn::EmbeddingImpl>(nn::EmbeddingOptions(10, 3).sparse(true));
  auto model = session->wrap(net);
  const auto words = at::arange(6, at::kLong);
  model.train_step(
      words, [](nn::EmbeddingImpl& replica, const at::Tensor& part) { return replica.forward(part); },
      [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
  ASSERT_TRUE(net->weight.grad().is_sparse());
  const auto dense = net->weight.grad().to_dense();
  EXPECT_TRUE(dense.narrow(0, 0, 6).eq(1).all().item<bool>());
  EXPECT_TRUE(dense.narrow(0, 6, 4).eq(0).all().item<bool>());
}

TEST(Dp, NamesThePartAndDeviceThatFailed) {
  const auto session = dp_session(3);
  auto model = session->wrap(Net());
  const auto failing = [](NetImpl& replica, const at::Tensor& part) {
    if (part[0][0].item<double>() != make_batch(3)[0][0].item<double>()) throw std::out_of_range("no such word");
    return replica.forward(part);
  };
  try {
    model.train_step(make_batch(3), failing,
                     [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
    FAIL() << "no exception";
  } catch (const ReplicaFailed& error) {
    EXPECT_STREQ(error.what(), "part 1 of 3 (device cpu): no such word");
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
  model.train_step(make_batch(3), forward, [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
  EXPECT_TRUE(model->layer->weight.grad().defined()) << "the next step works";
}

TEST(Dp, RefusesTheStepOfAWrappedModelWithinAStep) {
  const auto session = dp_session(3);
  auto model = session->wrap(Net());
  auto teacher = session->wrap(Net());
  const auto sum = [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); };
  for (auto* const other : {&teacher, &model}) {
    const auto distilled = [&](NetImpl& replica, const at::Tensor& part) {
      return replica.forward(part) - other->eval_step(part, forward);
    };
    try {
      model.train_step(make_batch(6), distilled, sum);
      FAIL() << "no exception";
    } catch (const ReplicaFailed& error) {
      EXPECT_THROW(std::rethrow_if_nested(error), std::logic_error);
    }
  }
  const auto by_module = [&](NetImpl& replica, const at::Tensor& part) {
    const at::NoGradGuard no_grad;
    return replica.forward(part) - (*teacher).forward(part);
  };
  EXPECT_EQ(model.eval_step(make_batch(6), by_module).size(0), 6);
  EXPECT_EQ(teacher.eval_step(make_batch(6), forward).size(0), 6) << "between two steps it is as always";
}

std::string refusal_of(const std::function<void()>& training) {
  try {
    training();
    return "accepted";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(Dp, RefusesTheClassicBackwardWhichTrainsOneDevice) {
  for (const std::string strategy : {"dp", "ddp2"}) {
    run_layout({strategy, 2, strategy == "dp" ? 1 : 2}, [](Session& session) {
      Net net;
      auto model = session.wrap(net);
      EXPECT_EQ(refusal_of([&] { net->forward(make_batch(6)).sum().backward(); }),
                "backward() was called outside of train_step(), which under dp and ddp2 splits each batch over 2 "
                "devices; by itself it trains on one: call model.train_step(batch, step), or start the program with "
                "--strategy ddp");
    });
  }
}

TEST(Dp, RefusesTheClassicDistributedDataParallel) {
  const auto session = dp_session(2);
  EXPECT_EQ(refusal_of([&] { DistributedDataParallel<NetImpl>(Net().ptr(), session->collectives()); }),
            "DistributedDataParallel trains on one device, and this session splits each batch over 2 (dp, ddp2): call "
            "session.wrap() and train_step() instead, or start the program with --strategy ddp");
  const auto of_one_device = dp_session(1);
  EXPECT_EQ(refusal_of([&] { DistributedDataParallel<NetImpl>(Net().ptr(), of_one_device->collectives()); }),
            "accepted");
}

TEST(Dp, LetsAProgramThatStepsCallBackwardBesides) {
  const auto session = dp_session(2);
  auto model = session->wrap(Net());
  auto critic = session->wrap(Net());  // has had no step yet when the other's runs through it
  const auto sum = [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); };
  model.train_step(
      make_batch(6), [](NetImpl& replica, const at::Tensor& part) { return replica.forward(part); },
      [&](const at::Tensor& outputs, const at::Tensor&) { return (*critic).forward(outputs).sum(); });
  model.train_step(
      make_batch(6), [&](NetImpl& replica, const at::Tensor& part) { return (*critic).forward(replica.forward(part)); },
      sum);
  EXPECT_TRUE(critic->layer->weight.grad().defined());
  Net alone = copy_of(model.module());
  model->zero_grad();
  model.train_step(make_batch(6), forward, sum);
  model->layer->weight.square().sum().backward();  // a penalty
  (alone->forward(make_batch(6)).sum() + alone->layer->weight.square().sum()).backward();
  expect_close(model->layer->weight.grad(), alone->layer->weight.grad(), "gradient with the penalty");
}

TEST(Dp, ForgetsTheGradientsOfABackwardThatFailed) {
  const auto session = dp_session(3);
  Net net;
  Net alone = copy_of(net);
  auto model = session->wrap(net);
  const auto sum = [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); };
  const auto failing = [](NetImpl& replica, const at::Tensor& part) {
    auto outputs = replica.layer(part);
    if (part[0][0].item<double>() == make_batch(3)[1][0].item<double>()) {
      outputs.register_hook([](const at::Tensor&) { throw std::out_of_range("no such word"); });
    }
    return outputs;
  };
  const auto linear = [](NetImpl& replica, const at::Tensor& part) { return replica.layer(part); };
  EXPECT_THROW(model.train_step(make_batch(3), failing, sum), ReplicaFailed);
  net->zero_grad();
  model.train_step(make_batch(3), linear, sum);
  alone->layer(make_batch(3)).sum().backward();
  expect_close(net->layer->weight.grad(), alone->layer->weight.grad(), "gradient");
}

TEST(Dp, WeighsPartsInADtypeThatCannotCountTheirSamples) {
  // 257 samples are 256 in bfloat16, and 8 · 8192 is beyond float16.
  const auto mean_of = [](double loss, at::ScalarType type, std::int64_t samples) {
    return detail::weighted_mean(at::full({2}, loss, type), samples, 2).item<double>();
  };
  EXPECT_EQ(mean_of(1, at::kBFloat16, 514), 1);
  EXPECT_EQ(mean_of(8, at::kHalf, 16384), 8);
}

}  // namespace
}  // namespace lrun::detail
