// Session::wrap, train_step, eval_step, and what is sent when a module is wrapped.
#include "lrun/model.h"

#include <gtest/gtest.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/error.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "runtime/ddp/model_agreement.h"
#include "runtime/support/recording_collectives.h"
#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

namespace nn = torch::nn;
using test::RecordingCollectives;
using test::run_ranks;
using test::run_ranks_and_catch;
using test::run_sessions;

struct NetImpl : nn::Module {
  NetImpl() {
    layer = register_module("layer", nn::Linear(4, 4));
    norm = register_module("norm", nn::BatchNorm1d(4));
    mask = register_buffer("mask", at::ones({4}, at::kBool));
  }
  at::Tensor forward(const at::Tensor& input) { return norm(layer(input)) * mask; }

  nn::Linear layer{nullptr};
  nn::BatchNorm1d norm{nullptr};
  at::Tensor mask;
};
TORCH_MODULE(Net);

struct Batch {
  at::Tensor data;
  at::Tensor target;
};

Batch make_batch(int rank) { return {at::full({3, 4}, rank + 1.0) + at::eye(4).narrow(0, 0, 3), at::ones({3, 4})}; }

void fill(nn::Module& module, double value) {
  at::NoGradGuard no_grad;
  for (auto& tensor : module.parameters()) tensor.fill_(value);
  for (auto& tensor : module.buffers()) tensor.fill_(value);
}

TEST(Wrap, GivesAllRanksTheParametersAndBuffersOfRankZero) {
  run_sessions(3, [](Session& session) {
    Net net;
    fill(*net, session.rank());
    net->mask.fill_(session.rank() == 0);
    auto model = session.wrap(net);
    for (const auto& tensor : net->parameters()) EXPECT_TRUE(tensor.eq(0).all().item<bool>());
    EXPECT_TRUE(net->norm->running_mean.eq(0).all().item<bool>());
    EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 0);
    EXPECT_TRUE(net->mask.all().item<bool>());
    EXPECT_EQ(model.module(), net.ptr());
  });
}

TEST(Wrap, RefusesAModuleOfAnotherLivingModel) {
  run_sessions(2, [](Session& session) {
    Net net;
    {
      auto model = session.wrap(net);
      EXPECT_THROW(auto again = session.wrap(net), std::invalid_argument);
      EXPECT_THROW(auto part = session.wrap(net->layer), std::invalid_argument);
    }
    auto after = session.wrap(net);
    EXPECT_EQ(after.module(), net.ptr());
  });
}

TEST(Wrap, InInferenceModeMakesAModelThatTrains) {
  run_sessions(2, [](Session& session) {
    Net net;
    auto model = [&] {
      const c10::InferenceMode inference;
      return session.wrap(net);
    }();
    model.train_step(make_batch(0), [&](NetImpl& replica, const Batch& part) {
      return replica.forward(part.data).sum() * (session.rank() + 1);
    });
    const auto gradient = net->norm->bias.grad();
    EXPECT_TRUE(session.all_reduce(gradient, ReduceOp::kMax).equal(gradient)) << "differs between ranks";
  });
}

TEST(Wrap, RefusesParametersThatWereMadeInInferenceMode) {
  run_sessions(2, [](Session& session) {
    const c10::InferenceMode inference;
    Net net;
    try {
      auto model = session.wrap(net);
      ADD_FAILURE() << "accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(), "parameter 'layer.weight' was made in inference mode and cannot be trained");
    }
  });
}

TEST(TrainStep, RefusesParametersThatWereRegisteredReplacedOrRemovedAfterwards) {
  const std::vector<std::pair<std::function<void(Net&)>, std::string>> cases = {
      {[](Net& net) { net->register_parameter("scale", at::ones({1})); }, "'scale' was registered or replaced"},
      {[](Net& net) { net->layer = net->replace_module("layer", nn::Linear(4, 4)); },
       "'layer.weight' was registered or replaced"},
      {[](Net& net) { net->unregister_module("norm"); }, "'norm.weight' was removed"}};
  for (const int world_size : {1, 2}) {
    for (const auto& [change, text] : cases) {
      run_sessions(world_size, [&](Session& session) {
        Net net;
        auto model = session.wrap(net);
        const auto train = [&] {
          model.train_step(make_batch(0),
                           [](NetImpl& replica, const Batch& part) { return replica.layer(part.data).sum(); });
        };
        train();
        change(net);
        try {
          train();
          ADD_FAILURE() << text << ": accepted";
        } catch (const std::logic_error& error) {
          EXPECT_EQ(error.what(),
                    "parameter " + text + " after the module was wrapped: destroy the wrapped model and wrap again");
        }
      });
    }
  }
}

TEST(TrainStep, RunsStepAndStepEndAndAveragesGradients) {
  run_sessions(2, [](Session& session) {
    Net net;
    auto model = session.wrap(net);
    Batch seen;
    const auto loss = model.train_step(
        make_batch(session.rank()), [](NetImpl& replica, const Batch& part) { return replica.forward(part.data); },
        [&](const at::Tensor& outputs, const Batch& full) {
          EXPECT_TRUE(outputs.requires_grad());
          seen = full;
          return at::mse_loss(outputs, full.target);
        });
    EXPECT_TRUE(seen.data.equal(make_batch(session.rank()).data));
    EXPECT_EQ(loss.dim(), 0);
    EXPECT_FALSE(loss.requires_grad());
    const auto gradient = net->layer->weight.grad();
    EXPECT_TRUE(session.all_reduce(gradient, ReduceOp::kMax).equal(gradient)) << "differs between ranks";
  });
}

TEST(TrainStep, EqualsTheClassicForm) {
  run_sessions(2, [](Session& session) {
    torch::manual_seed(1);
    Net one;
    Net other;
    fill(*one, 0.5);
    fill(*other, 0.5);
    auto model = session.wrap(one);
    DistributedDataParallel ddp(other.ptr(), session);
    const auto batch = make_batch(session.rank());
    model.train_step(batch, [](NetImpl& replica, const Batch& part) {
      return at::mse_loss(replica.forward(part.data), part.target);
    });
    at::mse_loss(ddp.forward(batch.data), batch.target).backward();
    for (const auto& item : one->named_parameters()) {
      EXPECT_TRUE(item.value().grad().equal(other->named_parameters()[item.key()].grad())) << item.key();
    }
  });
}

TEST(Classic, OfASessionHasItsOptionsWhereNoneAreGiven) {
  const auto small_buckets = [](int) {
    return SessionOptions{.gradients = {.bucket_bytes = 1, .first_bucket_bytes = 1}, .banner = false};
  };
  const auto body = [](Session& session) {
    Net net;
    const auto buckets_of = [&](const std::optional<WrapOptions>& options) {
      return DistributedDataParallel(net.ptr(), session, options).gradient_sync().buckets().size();
    };
    EXPECT_EQ(buckets_of(std::nullopt), 4U);  // one a parameter
    EXPECT_EQ(buckets_of(WrapOptions{.broadcast_buffers = false}), 4U);
    EXPECT_EQ(buckets_of(WrapOptions{.gradients = GradientSyncOptions()}), 1U);
  };
  run_sessions(2, body, small_buckets);
}

TEST(TrainStep, PassesContainersOfOutputsOn) {
  run_sessions(2, [](Session& session) {
    auto model = session.wrap(Net());
    const auto loss = model.train_step(
        make_batch(0),
        [](NetImpl& replica, const Batch& part) {
          const auto hidden = replica.layer(part.data);
          return std::tuple(hidden, std::vector<at::Tensor>{replica.norm(hidden)});
        },
        [](const auto& outputs, const Batch&) { return std::get<0>(outputs).sum() + std::get<1>(outputs)[0].sum(); });
    EXPECT_EQ(loss.numel(), 1);
  });
}

TEST(TrainStep, RefusesALossOfSeveralElements) {
  Session session({.world = World()});
  auto model = session.wrap(Net());
  const auto step = [](NetImpl& replica, const Batch& part) { return replica.forward(part.data); };
  EXPECT_THROW(model.train_step(make_batch(0), step), std::invalid_argument);
  EXPECT_THROW(model.train_step(make_batch(0), step, [](const at::Tensor&, const Batch&) { return at::Tensor(); }),
               std::invalid_argument);
}

TEST(TrainStep, TrainsWithTheSessionsOptimizer) {
  run_sessions(2, [](Session& session) {
    Net net;
    auto model = session.wrap(net);
    auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.01);
    double first = 0;
    double last = 0;
    for (int step = 0; step < 20; ++step) {
      optimizer.zero_grad();
      EXPECT_FALSE(net->layer->weight.grad().defined());
      last = model
                 .train_step(make_batch(session.rank()),
                             [](NetImpl& replica, const Batch& part) {
                               return at::mse_loss(replica.forward(part.data), part.target);
                             })
                 .item<double>();
      if (step == 0) first = last;
      optimizer.step();
    }
    EXPECT_LT(last, first);
    EXPECT_EQ(optimizer->param_groups().size(), 1U);
  });
}

TEST(EvalStep, HasNoGradientsAndDoesNotCommunicate) {
  run_ranks(2, [](int, Collectives& inner) {
    std::vector<std::string> operations;
    RecordingCollectives collectives(
        inner, [&](const std::string& operation, const at::Tensor&) { operations.push_back(operation); });
    Net net;
    Model<NetImpl> model(net.ptr(), std::make_unique<ReplicatedModule>(net.ptr(), collectives, WrapOptions()),
                         at::kCPU);
    operations.clear();
    const auto step = [](NetImpl& replica, const Batch& part) { return replica.forward(part.data); };
    EXPECT_FALSE(model.eval_step(make_batch(0), step).requires_grad());
    const auto hits = model.eval_step(make_batch(0), step, [](const at::Tensor& outputs, const Batch& batch) {
      return outputs.size(0) == batch.target.size(0) ? 3 : 0;
    });
    EXPECT_EQ(hits, 3) << "step_end may return anything";
    EXPECT_TRUE(operations.empty());
  });
}

/// Rank r's running mean after `forwards` training steps that begin with r + 1 in the mean.
TEST(Buffers, OfRankZeroGoToAllBeforeEachTrainingForward) {
  for (const bool broadcast : {true, false}) {
    run_sessions(2, [broadcast](Session& session) {
      Net net;
      auto model = session.wrap(net, WrapOptions{.broadcast_buffers = broadcast});
      net->norm->running_var.fill_(session.rank() + 5.0);
      const auto step = [](NetImpl& replica, const Batch&) { return replica.layer->weight.sum(); };
      {
        const auto guard = model.no_sync();
        model.train_step(make_batch(0), step);
        EXPECT_EQ(net->norm->running_var[0].item<double>(), session.rank() + 5.0) << "sent under no_sync";
      }
      model.train_step(make_batch(0), step);
      EXPECT_EQ(net->norm->running_var[0].item<double>(), broadcast ? 5.0 : session.rank() + 5.0);
      model.broadcast_buffers();
      EXPECT_EQ(net->norm->running_var[0].item<double>(), 5.0);
    });
  }
}

TEST(Buffers, MayBeSentBetweenTwoForwardsOfOneBackward) {
  run_sessions(2, [](Session& session) {
    Net net;
    DistributedDataParallel<NetImpl> ddp(net.ptr(), session.collectives());
    net->eval();  // backward uses the running statistics
    const auto first = ddp.forward(make_batch(0).data);
    const auto second = ddp.forward(make_batch(1).data);
    (first.sum() + second.sum()).backward();
    EXPECT_TRUE(net->layer->weight.grad().defined());
  });
}

TEST(Forward, WithoutGradientsIsTheModulesOwn) {
  run_ranks(2, [](int, Collectives& inner) {
    int operations = 0;
    RecordingCollectives collectives(inner, [&](const std::string&, const at::Tensor&) { ++operations; });
    DistributedDataParallel<NetImpl> ddp(Net().ptr(), collectives);
    operations = 0;
    at::NoGradGuard no_grad;
    EXPECT_FALSE(ddp(make_batch(0).data).requires_grad());
    EXPECT_EQ(operations, 0);
  });
}

struct Differing : nn::Module {
  Differing(int rank, const std::string& what) {
    register_parameter("first", at::ones({2, 3}));
    const bool differs = rank == 1;
    register_parameter(differs && what == "name" ? "zweiter" : "second",
                       differs && what == "strides" ? at::ones({5, 4}).t()
                                                    : at::ones({4, differs && what == "shape" ? 6 : 5},
                                                               differs && what == "dtype" ? at::kDouble : at::kFloat),
                       !(differs && what == "requires_grad"));
    if (differs && what == "count") register_parameter("third", at::ones({1}));
    register_buffer("table", at::ones({differs && what == "buffer" ? 8 : 7}));
  }
};

TEST(Mismatch, IsNamedOnAllRanks) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"name",
       "parameter 'second' is Float [4, 5], trained on rank 0, and parameter 'zweiter' is Float [4, 5], trained "
       "on rank 1"},
      {"shape",
       "parameter 'second' is Float [4, 5], trained on rank 0, and parameter 'second' is Float [4, 6], trained "
       "on rank 1"},
      {"dtype",
       "parameter 'second' is Float [4, 5], trained on rank 0, and parameter 'second' is Double [4, 5], trained "
       "on rank 1"},
      {"strides",
       "parameter 'second' is Float [4, 5], trained on rank 0, and parameter 'second' is Float [4, 5] strides 1 4, "
       "trained on rank 1"},
      {"requires_grad",
       "parameter 'second' is Float [4, 5], trained on rank 0, and parameter 'second' is Float [4, 5], "
       "frozen on rank 1"},
      {"count", "buffer 'table' is Float [7] on rank 0, and parameter 'third' is Float [1], trained on rank 1"},
      {"buffer", "buffer 'table' is Float [7] on rank 0, and buffer 'table' is Float [8] on rank 1"}};
  for (const auto& [what, text] : cases) {
    const auto failures = run_ranks_and_catch(3, [&](int rank, Collectives& collectives) {
      ReplicatedModule replicated(std::make_shared<Differing>(rank, what), collectives, {});
    });
    for (const auto& failure : failures) {
      ASSERT_NE(failure, nullptr) << what << ": a rank was not told";
      try {
        std::rethrow_exception(failure);
      } catch (const RankMismatch& error) {
        EXPECT_EQ(error.what(), "the model differs between ranks: " + text);
      }
    }
  }
}

TEST(Mismatch, OfAShorterModelSaysSo) {
  const ModelDescription longer = {{"parameter 'a'", "Float [1], trained"}};
  EXPECT_EQ(first_difference({longer, longer, {}}),
            "the model differs between ranks: parameter 'a' is Float [1], trained on rank 0, and there is nothing more "
            "on rank 2");
  EXPECT_EQ(first_difference({longer, longer}), std::nullopt);
}

}  // namespace
}  // namespace lrun::detail
